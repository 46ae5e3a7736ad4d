import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { openSync, closeSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** Operation of a process on the files under one folder. Events are in the order in which the kernel saw them. */
export type DiskEvent =
  | { readonly kind: "open"; readonly path: string; readonly truncates: boolean; readonly creates: boolean }
  | {
      readonly kind: "write";
      readonly path: string;
      readonly bytes: Buffer;
      readonly at: number;
      readonly through: boolean;
    }
  | { readonly kind: "truncate"; readonly path: string; readonly size: number }
  | { readonly kind: "sync" | "unlink" | "mkdir" | "symlink"; readonly path: string }
  | { readonly kind: "rename" | "link"; readonly path: string; readonly to: string }
  | { readonly kind: "copy"; readonly path: string; readonly to: string; readonly size: number }
  | { readonly kind: "said"; readonly text: string };

/** `atMs` is the time at which the operation ended; for output of the process (`said`) the time at which it began. */
export type Timed = DiskEvent & { readonly atMs: number };

const CALLS =
  "openat,open,creat,pwrite64,write,pwritev,writev,lseek,fdatasync,fsync,msync,ftruncate,fallocate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,copy_file_range,sendfile,symlink,symlinkat";

/** The trace cuts longer writes. */
const STRING_MAX_BYTES = 8_000_000;

/** Characters of a line that an error quotes. */
const LINE_SHOWN = 300;

export interface Traced {
  readonly command: readonly string[];
  /** Where the trace is written. */
  readonly file: string;
  /** Where the process's own output goes; undefined leaves it unread. */
  readonly output: string | undefined;
  readonly environment?: Readonly<Record<string, string>>;
}

/** True if this machine can trace, and always in CI, where a missing strace is a failure. */
export function canTrace(): boolean {
  return process.env.CI !== undefined || spawnSync("strace", ["-V"]).status === 0;
}

/** Starts a process under strace; `pid` is strace's, the process is its child. */
export function startTraced({ command, file, output, environment }: Traced): {
  readonly pid: number;
  readonly ended: Promise<void>;
} {
  const out = output === undefined ? undefined : openSync(output, "w");
  const flags = [
    "-f",
    "-y",
    "-xx",
    "-ttt",
    "-T",
    "-s",
    String(STRING_MAX_BYTES),
    "-e",
    `trace=${CALLS}`,
    "-e",
    "signal=none",
    "-o",
    file,
  ];
  const child = spawn("strace", [...flags, "--", ...command], {
    stdio: ["ignore", out ?? "ignore", "inherit"],
    env: { ...process.env, ...environment, UV_USE_IO_URING: "0" },
  });
  if (out !== undefined) closeSync(out);
  return { pid: child.pid ?? 0, ended: once(child, "exit").then(() => undefined) };
}

/** `output` is the file of the process's own output, as given to `startTraced`. */
export async function readTrace(file: string, folder: string, output?: string): Promise<readonly Timed[]> {
  const reader = new TraceReader(folder, output);
  for (const line of joined((await readFile(file, "latin1")).split("\n"))) reader.take(line);
  return reader.events;
}

/**
 * Joins `<unfinished ...>` and `resumed` into one line, at the place of the second; a write to a file counts from its
 * beginning. An end without its beginning is an error, because the arguments of the call are unknown.
 */
function* joined(lines: readonly string[]): Iterable<string> {
  const begun = new Map<string, string>();
  for (const line of lines) {
    const [, pid = "", call, resumed = ""] = /^(\d+) +[\d.]+ <\.\.\. (\w+) resumed>(.*)$/.exec(line) ?? [];
    const open = / <unfinished \.\.\.>$/.exec(line);
    if (open) begun.set(line.split(" ", 1)[0] ?? "", line.slice(0, open.index));
    else if (call === undefined) yield line;
    else {
      const beginning = begun.get(pid) ?? "";
      begun.delete(pid);
      if (!beginning.includes(` ${call}(`))
        throw new Error(`The trace shows the end of a call without its beginning: ${line.slice(0, LINE_SHOWN)}.`);
      yield beginning + resumed;
    }
  }
}

/** Process, seconds, call, arguments, result, seconds taken. */
const CALL = /^\d+ +([\d.]+) (\w+)\((.*)\) += (-?\d+)(?:<[^>]*>)?(?: .*)?<([\d.]+)>$/;

class TraceReader {
  readonly events: Timed[] = [];
  readonly #folder: string;
  readonly #through = new Map<number, boolean>();
  readonly #positions = new Map<number, number>();

  readonly #output: string | undefined;

  constructor(folder: string, output: string | undefined) {
    this.#folder = folder;
    this.#output = output;
  }

  take(line: string): void {
    const [, began, call = "", args = "", result, took] = CALL.exec(line) ?? [];
    if (began === undefined || Number(result) < 0) return;
    const [beganMs, endedMs] = [Number(began) * 1_000, (Number(began) + Number(took)) * 1_000];
    for (const event of this.#read(call, args, Number(result))) {
      if (event.kind === "said") this.events.push({ ...event, atMs: beganMs });
      else if (event.path.startsWith(this.#folder)) this.events.push({ ...event, atMs: endedMs });
    }
  }

  #read(call: string, args: string, result: number): DiskEvent[] {
    const texts = [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, text]) => decode(text ?? ""));
    const path = decode(/^\d+<([^>]*)>/.exec(args)?.[1] ?? "").toString();
    const fd = Number.parseInt(args, 10);
    switch (call) {
      case "openat":
      case "open":
      case "creat":
        return this.#opened(String(texts[0]), args, result);
      case "lseek":
        this.#positions.set(fd, result);
        return [];
      case "write":
      case "writev":
      case "pwrite64":
      case "pwritev":
        return this.#written({ call, args, fd, path, result, bytes: Buffer.concat(texts) });
      case "fdatasync":
      case "fsync":
        return [{ kind: "sync", path }];
      case "ftruncate":
        return [{ kind: "truncate", path, size: Number(args.split(", ")[1]) }];
      case "rename":
      case "renameat":
      case "renameat2":
        return [{ kind: "rename", path: String(texts[0]), to: String(texts[1]) }];
      case "link":
      case "linkat":
        return [{ kind: "link", path: String(texts[0]), to: String(texts[1]) }];
      case "unlink":
      case "unlinkat":
        return [{ kind: "unlink", path: String(texts[0]) }];
      case "mkdir":
      case "mkdirat":
        return [{ kind: "mkdir", path: String(texts[0]) }];
      case "symlink":
      case "symlinkat":
        return [{ kind: "symlink", path: String(texts[1]) }];
      case "copy_file_range":
        return copied(args, result, [0, 1]);
      case "sendfile":
        return copied(args, result, [1, 0]);
      case "msync":
        throw new Error("Something is written through a mapping: this trace does not show it.");
      default:
        return [];
    }
  }

  #opened(path: string, args: string, fd: number): DiskEvent[] {
    // Other processes have other files under the same numbers.
    if (!path.startsWith(this.#folder)) return [];
    this.#through.set(fd, /O_D?SYNC/.test(args));
    this.#positions.set(fd, 0);
    return [{ kind: "open", path, truncates: args.includes("O_TRUNC"), creates: args.includes("O_CREAT") }];
  }

  #written({ call, args, fd, path, bytes, result }: Written): DiskEvent[] {
    if (path === this.#output) return [{ kind: "said", text: bytes.toString() }];
    if (!path.startsWith(this.#folder)) return [];
    if (bytes.length !== result)
      throw new Error(
        `The trace shows ${bytes.length} of the ${result} bytes written to ${path}: ${call}(… ${args.slice(-LINE_SHOWN)}.`,
      );
    const here = this.#positions.get(fd) ?? 0;
    const at = call.startsWith("p") ? Number(/, (\d+)$/.exec(args)?.[1]) : here;
    if (!call.startsWith("p")) this.#positions.set(fd, here + bytes.length);
    return [{ kind: "write", path, bytes, at, through: this.#through.get(fd) ?? false }];
  }
}

/** A copy by the kernel between two open files; each call copies as much as is left. */
function copied(args: string, size: number, [from, to]: readonly [number, number]): DiskEvent[] {
  const paths = [...args.matchAll(/\d+<([^>]*)>/g)].map(([, path]) => decode(path ?? "").toString());
  return size === 0 ? [] : [{ kind: "copy", path: paths[from] ?? "", to: paths[to] ?? "", size }];
}

interface Written {
  readonly call: string;
  readonly args: string;
  readonly fd: number;
  readonly path: string;
  readonly bytes: Buffer;
  readonly result: number;
}

function decode(text: string): Buffer {
  return Buffer.from(text.replaceAll("\\x", ""), "hex");
}
