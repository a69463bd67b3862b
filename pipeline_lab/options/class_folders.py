"""A user's own files, in a folder with a subfolder for each class."""


def check_folder(data: str, folder: str | None) -> None:
    """Refuse a folder without ``data = folder``, and the other way round."""
    if data == "folder" and not folder:
        raise ValueError("data = folder needs a folder with a subfolder for each class")
    if data != "folder" and folder:
        raise ValueError(f"a folder only applies to data = folder, not to data = {data}; remove one of them")
    if folder and any(letter in folder for letter in "*?["):
        raise ValueError("TensorFlow takes *, ? and [ in a path for a pattern; name a folder without them")
