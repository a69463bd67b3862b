"""From results to Plotly figures: one public function per chart, nothing shown."""
