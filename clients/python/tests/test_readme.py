import contextlib
import io
import os
import re
import sqlite3
import unittest

from .running import Server


class Readme(unittest.TestCase):
    def test_the_first_minute(self) -> None:
        server = Server(self)
        server.exec("INSERT INTO kv VALUES (1, 'jim'), (2, 'bob'), (3, NULL)")
        server.publish()
        with open(os.path.join(os.path.dirname(__file__), "..", "README.md"), encoding="utf-8") as file:
            blocks = re.findall(r"```python\n(.*?)```", file.read(), re.S)
        self.assertEqual(len(blocks), 2)
        code = "".join(blocks).replace("http://127.0.0.1:8080", server.url)
        was, printed = os.getcwd(), io.StringIO()
        os.chdir(server.folder)
        self.addCleanup(os.chdir, was)
        with contextlib.redirect_stdout(printed):
            for _ in range(2):
                exec(compile(code, "README.md", "exec"), {})
                server.exec("UPDATE kv SET v = 'ann' WHERE id = 1", "DELETE FROM kv WHERE id = 2")
                server.publish()
        self.assertTrue(printed.getvalue().startswith("1 upsert {'id': 1} {'id': 1, 'v': 'jim'}\n"))
        db = sqlite3.connect("mirror.db")
        self.assertEqual(db.execute("SELECT id, v FROM mirror ORDER BY id").fetchall(), [(1, "ann"), (3, None)])
        db.close()
