"""The report of one or several campaigns: read once (`view`), told in words, drawn and filmed, and laid out."""
