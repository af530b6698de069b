# SPDX-License-Identifier: Apache-2.0
import subprocess
import unittest


class Sum(unittest.TestCase):
    def test_adds(self):
        for a, b in [(1, 2), (40, 2), (-5, 5)]:
            shown = subprocess.run(["./sum", str(a), str(b)], capture_output=True, text=True).stdout
            self.assertEqual(int(shown), a + b)


unittest.main()
