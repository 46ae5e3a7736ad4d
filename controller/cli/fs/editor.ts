import { spawn } from "node:child_process";
import { once } from "node:events";

type Environment = Readonly<Record<string, string | undefined>>;

/** The editor of the user: `VISUAL`, `EDITOR` or `vi`. It may be a command line with options. */
export function editorOf({ VISUAL, EDITOR }: Environment): string {
  return [VISUAL, EDITOR].find((command) => command !== undefined && command.trim() !== "") ?? "vi";
}

/** Opens a file in an editor on the terminal of this process. Returns the exit code; 1 if a signal ended the editor. */
export async function runEditor(command: string, file: string, env: Environment): Promise<number> {
  // The shell splits the command line. The name of the file is never part of it.
  const child = spawn("sh", ["-c", `${command} "$@"`, command, file], { stdio: "inherit", env: { ...env } });
  const [code] = (await once(child, "close")) as [number | null];
  return code ?? 1;
}
