import { homedir } from "node:os";
import { platformClock, platformRandom } from "../../common/client/platform.ts";
import packageJson from "../../package.json" with { type: "json" };
import { runCommandLine } from "./command-line.ts";
import { ContextFile, contextsPath } from "./contexts/file.ts";
import { Output } from "./output.ts";
import { page } from "./pager.ts";
import { PipeReaders } from "./readers.ts";

/** `odp`: the command line. A client of the HTTP interface like any other. */

const { argv, env, stdin, stdout, stderr, platform } = process;

const readers = new PipeReaders(process.pid);

process.exitCode = await runCommandLine(argv.slice(2), {
  ...{ version: packageJson.version, environment: env, stdin, stdout, stderr, platform },
  contexts: new ContextFile(contextsPath(env, homedir()), platform),
  output: new Output(process, (text) => console.error(text)),
  isReaderGone: () => readers.areGone(),
  on: (signal, listener) => process.on(signal, listener),
  off: (signal, listener) => process.off(signal, listener),
  pager: (command, text) => page(command, text, env),
  clock: { ...platformClock, nowMs: () => Date.now() },
  random: platformRandom,
  zoneName: () => Intl.DateTimeFormat().resolvedOptions().timeZone,
});
