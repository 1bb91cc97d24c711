"""A plugin of pytest: kazoo's own tests get one `platter coord` where they would start an ensemble of Apache's.

KAZOO_SERVER is its command, KAZOO_PORT its port, KAZOO_DATA its data directory.
"""
import atexit
import collections
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
import types

for name in ("OpenSSL", "OpenSSL.crypto", "jks"):  # for certificates, which are not needed here
    sys.modules[name] = types.ModuleType(name)
sys.modules["OpenSSL"].crypto = sys.modules["OpenSSL.crypto"]

import kazoo.testing.harness as harness

Info = collections.namedtuple("Info", "server_id client_port secure_client_port election_port leader_port admin_port peer_type")


class Server:
    def __init__(self):
        self.client_port = int(os.environ["KAZOO_PORT"])
        self.server_info = Info(1, self.client_port, 0, 0, 0, 0, "participant")
        self.address = self.secure_address = "127.0.0.1:%d" % self.client_port
        self.process = None

    @property
    def running(self):
        return self.process is not None

    def run(self):
        if self.running:
            return
        self.process = subprocess.Popen(shlex.split(os.environ["KAZOO_SERVER"]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", self.client_port)).close()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server does not answer")

    def stop(self):
        if self.running:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def destroy(self):
        self.stop()
        shutil.rmtree(os.environ["KAZOO_DATA"], ignore_errors=True)


class Cluster(list):
    def start(self):
        for s in self:
            s.run()

    def stop(self):
        for s in self:
            s.stop()

    def terminate(self):
        for s in self:
            s.destroy()

    def reset(self):
        self.terminate()
        self.start()

    def get_logs(self, *_):
        return []


cluster = Cluster([Server()])
cluster.start()
atexit.register(cluster.terminate)
harness.get_global_cluster = lambda: cluster
