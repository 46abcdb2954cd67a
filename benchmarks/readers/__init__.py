"""Fuzzing of our own readers: files, texts and command lines that strangers may have made."""
