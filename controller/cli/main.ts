import { homedir } from "node:os";
import { platformClock, platformRandom } from "../../common/client/platform.ts";
import packageJson from "../../package.json" with { type: "json" };
import { runCommandLine } from "./command-line.ts";
import { ContextFile, contextsPath } from "./contexts/file.ts";
import { Output } from "./output.ts";
import { page } from "./pager.ts";
import { fetchFor } from "./transport/choice.ts";
import type { PipeReaders } from "./readers.ts";

/**
 * `odp`: the command line. A client of the HTTP interface like any other. It has no top-level `await`, so that its bundle
 * is a script, which starts faster than a module.
 */

const { argv, env, stdout, stderr, platform } = process;

let readers: PipeReaders | undefined;

async function isReaderGone(): Promise<boolean> {
  readers ??= new (await import("./readers.ts")).PipeReaders(process.pid);
  return readers.areGone();
}

const clock = { ...platformClock, nowMs: () => Date.now() };

void runCommandLine(argv.slice(2), {
  ...{ version: packageJson.version, environment: env, stdout, stderr, platform },
  // Opened when it is used.
  get stdin() {
    return process.stdin;
  },
  contexts: new ContextFile(contextsPath(env, homedir()), platform),
  output: new Output(process, (text) => console.error(text)),
  isReaderGone,
  on: (signal, listener) => process.on(signal, listener),
  off: (signal, listener) => process.off(signal, listener),
  pager: (command, text) => page(command, text, env),
  fetch: fetchFor(process, clock),
  clock,
  random: platformRandom,
  zoneName: () => Intl.DateTimeFormat().resolvedOptions().timeZone,
}).then((code) => (process.exitCode = code));
