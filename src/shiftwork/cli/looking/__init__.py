"""Commands that show what there is, and the small switches that belong to each of these lists."""
