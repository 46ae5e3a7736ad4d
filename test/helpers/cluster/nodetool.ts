import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { CassandraNode } from "../../../deploy/local/cassandra.ts";
import { openedPackages } from "../../../deploy/local/jvm.ts";
import type { Daemon } from "../../../deploy/local/process.ts";
import { freePort } from "../programs/programs.ts";

const run = promisify(execFile);
const DEADLINE_MS = 120_000;

/** Runs Cassandra's `nodetool` on a node that has no open JMX port: opens the port first. Resolves with the output. */
export async function nodetool(node: CassandraNode, daemon: Daemon, words: readonly string[]): Promise<string> {
  const port = await freePort();
  const agent = [
    `jmxremote.port=${port}`,
    "jmxremote.host=127.0.0.1",
    "jmxremote.authenticate=false",
    "jmxremote.ssl=false",
  ];
  await run("jcmd", [String(daemon.pid), "ManagementAgent.start", ...agent], { timeout: DEADLINE_MS });
  try {
    // It writes a history of commands to the user's home.
    const machine = ["-cp", join(node.jars, "*"), ...openedPackages(), `-Duser.home=${node.dir}`];
    const tool = ["org.apache.cassandra.tools.NodeTool", "-h", "127.0.0.1", "-p", String(port)];
    const { stdout } = await run("java", [...machine, ...tool, ...words], { timeout: DEADLINE_MS });
    return stdout;
  } finally {
    await run("jcmd", [String(daemon.pid), "ManagementAgent.stop"], { timeout: DEADLINE_MS });
  }
}
