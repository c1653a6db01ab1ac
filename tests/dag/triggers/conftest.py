from tests.support.sshd import make_server, server

__all__ = ["make_server", "server"]
