"""Rates and times for a reader."""


def format_rate(per_second: float) -> str:
    """`per_second` for a reader: 12,021/s, 0.6/s."""
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.1f}/s"


def format_seconds(seconds: float) -> str:
    """`seconds` for a reader: 4.2 s, 3 min 20 s, 2 h 05 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"
