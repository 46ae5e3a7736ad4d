import { once } from "node:events";

type Environment = Readonly<Record<string, string | undefined>>;

const OPTIONS = "FRX";
const DEFAULT = `less -${OPTIONS}`;
/** A shell adds the number of the signal that ended its command. */
const SIGNALLED = 128;

/** The command line of `PAGER`, or the default; `undefined`: texts are not to be paged. */
export function pagerOf({ PAGER, TERM }: Environment): string | undefined {
  if (TERM === "dumb") return undefined;
  const command = PAGER?.trim() ?? DEFAULT;
  return command === "" || command === "cat" ? undefined : command;
}

/**
 * Shows a text with a pager on the terminal of this process, and waits until the user ends it, which may be before its
 * end. Returns false if the pager could not be started, or failed, as for an option that it does not have. `LESS` gets a default, so that colours are shown.
 */
export async function page(command: string, text: string, environment: Environment): Promise<boolean> {
  const env = { LESS: OPTIONS, ...environment };
  // Without a shell, nothing is told where less is not installed.
  const shell = command !== DEFAULT;
  const [program, words] = shell ? [command, []] : ["less", [`-${OPTIONS}`]];
  const { spawn } = await import("node:child_process");
  const child = spawn(program, words, { shell, stdio: ["pipe", "inherit", "inherit"], env });
  // A pager that has shown enough closes its input.
  child.stdin.on("error", () => undefined);
  child.stdin.end(text);
  try {
    const [code] = (await once(child, "close")) as [number | null];
    return code === null || code === 0 || code > SIGNALLED;
  } catch {
    return false;
  }
}
