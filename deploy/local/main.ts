import { join, resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { aliveDaemons, findLocalCluster, settingsLines, startLocalCluster } from "./cluster.ts";
import { defaultCacheDir } from "./install.ts";

/** `npm run cluster -- start|stop|status`: a real etcd and a real Cassandra on this machine, without Docker. */
interface Options {
  readonly dir: string;
  readonly nodes: number;
}

const program = new Command("cluster").description("a real etcd and a real Cassandra on 127.0.0.1, without Docker");
const defaultDir = join(defaultCacheDir(), "cluster");

withDir(program.command("start").description("install what is missing, start both, wait until both answer"))
  .option("--nodes <count>", "Cassandra nodes (only 1 so far)", wholeNumber, 1)
  .action((options: Options) => start(options));
withDir(program.command("stop").description("end what start began; does nothing when nothing runs")).action((options: Options) => stop(options));
withDir(program.command("status").description("tell what runs; exit code 1 when something is missing")).action((options: Options) => status(options));

try {
  await program.parseAsync();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

async function start(options: Options): Promise<void> {
  const dir = resolve(options.dir);
  const found = await findLocalCluster(dir);
  if (found !== undefined && (await aliveDaemons(found)).length === found.daemons.length) {
    console.error("Both run already.");
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
  const alive = found === undefined ? [] : await aliveDaemons(found);
  for (const daemon of found?.daemons ?? []) {
    console.error(`${daemon.name}: ${alive.includes(daemon) ? "runs" : "is gone"} (process ${daemon.pid}, log ${daemon.logFile})`);
  }
  if (found === undefined) console.error("Nothing was started.");
  if (found === undefined || alive.length < found.daemons.length) process.exitCode = 1;
  else print(settingsLines(found.settings));
}

function withDir(command: Command): Command {
  return command.option("--dir <folder>", "data, logs and state", defaultDir);
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d?$/.test(text)) throw new InvalidArgumentError("a whole number from 1 is wanted");
  return Number(text);
}

function print(lines: readonly string[]): void {
  for (const line of lines) console.log(line);
}
