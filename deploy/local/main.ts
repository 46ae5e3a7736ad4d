import { join, resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { findLocalCluster, settingsLines, startLocalCluster } from "./cluster.ts";
import { defaultCacheDir } from "./install.ts";
import { CLUSTER_SIZES, type ClusterSize } from "./plan.ts";

/** `npm run cluster -- start|stop|status`: a real etcd and a real Cassandra on this machine, without Docker. */
interface Options {
  readonly dir: string;
  readonly nodes: ClusterSize;
}

const program = new Command("cluster").description("a real etcd and a real Cassandra on loopback, without Docker");
const defaultDir = join(defaultCacheDir(), "cluster");

withDir(program.command("start").description("install what is missing, start, wait until all answer"))
  .option("--nodes <count>", "1: one etcd member and one Cassandra node; 3 or 5: a ring of so many of each", sizeOf, 1)
  .action((options: Options) => start(options));
withDir(program.command("stop").description("end what start began; does nothing when nothing runs")).action(
  (options: Options) => stop(options),
);
withDir(program.command("status").description("tell what runs; exit code 1 when something is missing")).action(
  (options: Options) => status(options),
);

try {
  await program.parseAsync();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

async function start(options: Options): Promise<void> {
  const dir = resolve(options.dir);
  const found = await findLocalCluster(dir);
  const alive = (await found?.alive()) ?? [];
  if (found !== undefined && alive.length > 0 && found.settings.etcdEndpoints.length !== options.nodes) {
    throw new Error(
      `Another number of nodes runs there: ${found.members.map((member) => member.name).join(", ")}. Stop it first.`,
    );
  }
  if (found !== undefined && alive.length === found.daemons.length) {
    console.error("All run already.");
    return print(settingsLines(found.settings));
  }
  await found?.stop();
  const cluster = await startLocalCluster({ dir, nodes: options.nodes, progress: (line) => console.error(line) });
  print(settingsLines(cluster.settings));
}

async function stop(options: Options): Promise<void> {
  const found = await findLocalCluster(resolve(options.dir));
  await found?.stop();
  console.error(found === undefined ? "Nothing to stop." : "Stopped.");
}

async function status(options: Options): Promise<void> {
  const found = await findLocalCluster(resolve(options.dir));
  const alive = (await found?.alive()) ?? [];
  for (const daemon of found?.daemons ?? []) {
    console.error(
      `${daemon.name}: ${alive.includes(daemon) ? "runs" : "is gone"} (process ${daemon.pid}, log ${daemon.logFile})`,
    );
  }
  if (found === undefined) console.error("Nothing was started.");
  if (found === undefined || alive.length < found.daemons.length) process.exitCode = 1;
  else print(settingsLines(found.settings));
}

function withDir(command: Command): Command {
  return command.option("--dir <folder>", "data, logs and state", defaultDir);
}

function sizeOf(text: string): ClusterSize {
  const size = CLUSTER_SIZES.find((one) => String(one) === text);
  if (size === undefined) throw new InvalidArgumentError(`${CLUSTER_SIZES.join(", ")} are possible`);
  return size;
}

function print(lines: readonly string[]): void {
  for (const line of lines) console.log(line);
}
