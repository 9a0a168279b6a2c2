"""How the notebooks of the documentation draw: sharp at any size, with the same bytes each time."""

c = get_config()  # noqa: F821
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.rc = {"svg.hashsalt": "nvlab", "figure.facecolor": "white"}
c.HistoryManager.enabled = False
