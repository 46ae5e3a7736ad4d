import type { JobChange } from "../../../../common/api/jobs.ts";
import { AppError } from "../../../../common/errors.ts";
import {
  JOB_COMMANDS_MAX,
  JOB_DEFINITION_MAX_BYTES,
  JOB_HOSTS_MAX,
  JOB_LINE_MAX_BYTES,
} from "../../../../common/limits.ts";
import { unstamped } from "../../../../common/revisions.ts";
import { parseTarget } from "../../../../common/targets/index.ts";
import { quoted } from "../../hosts/index.ts";
import { encodedLine, encodingOf } from "../output/encoding.ts";
import { formatJobName, type JobName } from "./names.ts";
import type { StoredJob } from "../store.ts";

/** A definition in which every member has its default. */
export function emptyJob(name: JobName): StoredJob {
  return {
    ...name,
    description: "",
    group: "",
    groupmode: "",
    host: [],
    begin: "",
    end: "",
    exec: [],
    arg: [],
    argenc: "",
    user: "",
    schedule: "",
    timeout: 0,
    algorithm: "",
    limit: 0,
    enable: 1,
    queue: "",
    retry: 0,
    retrydelay: 0,
    keep: 0,
    keepdays: 0,
    tag: [],
    createdMs: 0,
    changedMs: 0,
    creator: "",
  };
}

const ALGORITHMS: readonly string[] = ["roundrobin", "leastload", "random", "sticky"];
/** Members that do not change what is executed. */
const BESIDES: readonly string[] = ["name", "dir", "description", "enable", "keep", "keepdays", "tag"];

/** The definition after the change. Throws for a definition that cannot be executed. */
export function changedJob(before: StoredJob, change: JobChange): StoredJob {
  const { name, dir } = before;
  const members = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as JobChange;
  const job: StoredJob = {
    ...before,
    ...members,
    name,
    dir,
    exec: (members.exec ?? before.exec).filter((line) => line.trim() !== ""),
    host: namesIn(members.host ?? before.host),
  };
  check(job);
  return job;
}

/** True if the change contains a member that affects what is executed. */
export function saysWhatIsExecuted(change: JobChange): boolean {
  return Object.entries(change).some(([name, value]) => value !== undefined && !BESIDES.includes(name));
}

/** The command lines for the shell, each followed by all arguments. Each argument is quoted as one word. */
export function commandLines({ exec, arg }: Pick<StoredJob, "exec" | "arg">): readonly string[] {
  return arg.length === 0 ? exec : exec.map((line) => [line.trimEnd(), ...arg.map(quoted)].join(" "));
}

/** The names in a list of texts, trimmed, without empty ones and repetitions. */
export function namesIn(texts: readonly string[]): readonly string[] {
  return [...new Set(texts.map((text) => text.trim()).filter((text) => text !== ""))];
}

function check(job: StoredJob): void {
  const { exec, arg, argenc, host, algorithm } = job;
  if (exec.length === 0) throw new AppError("invalid", "A job needs at least one exec.");
  if (exec.length > JOB_COMMANDS_MAX)
    throw tooLarge(`A job has at most ${JOB_COMMANDS_MAX} commands.`, "JOB_COMMANDS_MAX");
  if (host.length > JOB_HOSTS_MAX) throw tooLarge(`A job has at most ${JOB_HOSTS_MAX} hosts.`, "JOB_HOSTS_MAX");
  for (const entry of host) parseTarget(entry);
  if (algorithm !== "" && !ALGORITHMS.includes(algorithm))
    throw new AppError("invalid", `algorithm is ${ALGORITHMS.join(", ")}, not ${JSON.stringify(algorithm)}.`);
  const lines = commandLines({ exec, arg });
  if (lines.some((line) => line.includes("\0"))) throw new AppError("invalid", "exec or arg contains NUL.");
  const encoded = argenc === "" ? lines : lines.map((line) => encodedLine(line, argenc));
  if (argenc !== "") encodingOf(argenc);
  if (encoded.some((line) => Buffer.byteLength(line) > JOB_LINE_MAX_BYTES))
    throw tooLarge(`An exec has with its arg more than ${JOB_LINE_MAX_BYTES} bytes.`, "JOB_LINE_MAX_BYTES");
  if (Buffer.byteLength(JSON.stringify(written(job))) > JOB_DEFINITION_MAX_BYTES)
    throw tooLarge(
      `The definition of ${formatJobName(job)} has more than ${JOB_DEFINITION_MAX_BYTES} bytes.`,
      "JOB_DEFINITION_MAX_BYTES",
    );
}

/** The members that users write. Those that odp adds with each change do not count against the bound. */
function written({
  createdMs: _created,
  changedMs: _changed,
  creator: _creator,
  savedBy: _savedBy,
  scheduledMs: _scheduled,
  ...job
}: StoredJob): object {
  return unstamped(job);
}

function tooLarge(message: string, limit: string): AppError {
  return new AppError("too_large", message, { details: { limit } });
}
