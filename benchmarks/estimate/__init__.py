"""Does `estimate` say the truth, and how many episodes does it save?"""
