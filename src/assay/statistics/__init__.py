"""Statistics of scores and labels: intervals, agreement, comparisons of two. No I/O, no scores."""
