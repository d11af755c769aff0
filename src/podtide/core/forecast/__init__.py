"""On which day a subnet runs out, by the highest use of each day so far.

Pure, and in floats: no address depends on it. Start with `usage_forecast`, which puts together the days (`daily_maxima`), the
line (`usage_trend`), the weekdays (`weekly_pattern`) and how far the truth may be off (`forecast_band`).
"""
