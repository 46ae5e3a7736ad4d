import { AppError } from "../../../../common/errors.ts";
import { fileName, relativePath } from "../../../../common/paths.ts";

export interface JobName {
  readonly name: string;
  /** The folder of the job, without slashes at its ends; empty: none. */
  readonly dir: string;
}

export function jobName(name: string, dir: string): JobName {
  if (name.includes("@")) throw new AppError("invalid", `The job name ${JSON.stringify(name)} contains an @.`);
  const trimmed = dir.replace(/^\/+|\/+$/g, "");
  return { name: fileName(name), dir: trimmed === "" ? "" : relativePath(trimmed) };
}

/** Parses `<name>@<dir>`. */
export function parseJobName(full: string): JobName {
  const at = full.indexOf("@");
  return at < 0 ? jobName(full, "") : jobName(full.slice(0, at), full.slice(at + 1));
}

export function formatJobName({ name, dir }: JobName): string {
  return dir === "" ? name : `${name}@${dir}`;
}

/** True for the folder of the platform's jobs. Users can neither define nor delete jobs in it. */
export function isSystemDir(dir: string): boolean {
  return dir === "system" || dir.startsWith("system/");
}

/** A new id of a context, in the form that clients know: `M<yyyymmddhhmm>:<digits>`. */
export function contextId(nowMs: number, entropy: Uint8Array): string {
  const digits = [...entropy].map((byte) => byte.toString().padStart(3, "0")).join("");
  return `M${new Date(nowMs).toISOString().replace(/\D/g, "").slice(0, 12)}:${digits}`;
}
