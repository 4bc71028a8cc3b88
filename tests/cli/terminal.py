"""A terminal with a session of its own, as a person has one: what is typed goes in, what programs write comes out."""
import fcntl
import os
import pty
import select
import struct
import termios
import threading


class Terminal:
    def __init__(self, argv, cwd, rows=24, columns=80):
        self.output = b""
        self._hung_up = False
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd)
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
                os.execv(argv[0], [os.fspath(arg) for arg in argv])
            finally:
                os._exit(99)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while not self._hung_up:
            if not select.select([self.master], [], [], 0.02)[0]:
                continue
            try:
                self.output += os.read(self.master, 65536)
            except OSError:  # the last program has closed it
                return

    def type(self, text):
        os.write(self.master, text)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def wait(self):
        """The exit status of the first program, once all have closed the terminal."""
        self._reader.join(60)
        assert not self._reader.is_alive(), f"the terminal stays open: {self.output[-2000:]}"
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def hang_up(self):
        self._hung_up = True  # a read under way would keep it open
        self._reader.join()
        os.close(self.master)
