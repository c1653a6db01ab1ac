"""Messages about an unusable database."""

from sqlalchemy.exc import DBAPIError


def database_error_message(error: BaseException) -> str:
    """One line about an error of the database itself; '' for any other error."""
    if not isinstance(error, DBAPIError):
        return ""
    return f"the database cannot be used: {' '.join(str(error.orig).split())}"
