"""The report of one or several campaigns: read once, told in words, drawn, filmed, laid out."""
