"""What a report says, one module per kind of subject; the renderers know none of them."""
