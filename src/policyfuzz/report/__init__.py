"""Tables, figures and statistics of a campaign."""
