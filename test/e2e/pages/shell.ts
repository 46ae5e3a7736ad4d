import { spawn } from "node:child_process";

/**
 * The shell examples of a page for users, run by one shell in the order of the page. In a block with lines that begin
 * with `$ `, each of these is a command, and the lines below it are what it shows. Lines of the command that begin with
 * `> ` continue it. A block without such lines is a script that succeeds and shows
 * nothing.
 */

/** Time for all examples of a page. */
const PAGE_DEADLINE_MS = 200_000;

export interface Example {
  readonly command: string;
  /** Lines that the command shows. Absent: the command succeeds and shows nothing. */
  readonly shown?: string;
  readonly line: number;
}

export interface Shown {
  readonly output: string;
  readonly code: number;
}

export function shellExamples(page: string): readonly Example[] {
  return [...page.matchAll(/^```sh\n(.*?)\n```$/gms)].flatMap(({ 1: text = "", index }) => {
    const line = page.slice(0, index).split("\n").length + 1;
    return /^\$ /m.test(text) ? shownExamples(text.split("\n"), line) : [{ command: text, line }];
  });
}

function shownExamples(lines: readonly string[], first: number): readonly Example[] {
  const starts = lines.flatMap((line, at) => (line.startsWith("$ ") ? [at] : []));
  return starts.map((start, nth) => {
    const rest = lines.slice(start + 1, starts[nth + 1]);
    const end = rest.findIndex((line) => !line.startsWith("> "));
    const more = end === -1 ? rest : rest.slice(0, end);
    const command = [lines[start] ?? "", ...more].map((line) => line.slice(2)).join("\n");
    return { command, shown: rest.slice(more.length).join("\n"), line: first + start };
  });
}

export interface ShellOptions {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Runs the commands in one shell, and ends all that they left running. Returns what each showed, with its exit code. */
export async function inShell(
  commands: readonly string[],
  { folder, environment }: ShellOptions,
): Promise<readonly Shown[]> {
  const mark = `end-of-example-${process.pid}`;
  const script = commands.map((command) => `{ ${command}\n} 2>&1 </dev/null\necho "${mark} $?"`).join("\n");
  const parts = (await output(script, { folder, environment })).split(new RegExp(`${mark} (\\d+)\n`));
  return commands.map((_, nth) => ({ output: parts[2 * nth] ?? "", code: Number(parts[2 * nth + 1] ?? -1) }));
}

async function output(script: string, { folder, environment }: ShellOptions): Promise<string> {
  // A group of its own, so that agents which a page starts in the background end with it.
  const child = spawn("bash", ["-c", script], {
    cwd: folder,
    env: { PATH: process.env["PATH"] ?? "", HOME: folder, LC_ALL: "C.UTF-8", TZ: "UTC", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  const end = () => child.pid !== undefined && endGroup(child.pid);
  const timer = setTimeout(end, PAGE_DEADLINE_MS);
  child.once("exit", end);
  await new Promise<void>((resolve, reject) => child.once("close", () => resolve()).once("error", reject));
  clearTimeout(timer);
  return Buffer.concat(chunks).toString();
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    if ((error as { readonly code?: string }).code !== "ESRCH") throw error;
  }
}
