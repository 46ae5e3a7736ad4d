import { AppError } from "../../../../common/errors.ts";
import { memberLeftOut, parseJson } from "../../../../common/json.ts";
import { JOB_GROUPS_MAX, JOB_HOSTS_MAX, JOB_PARAM_MAX_BYTES } from "../../../../common/limits.ts";
import { requireWellFormed } from "../../../turns/well-formed.ts";
import type { SecretBox } from "../../../secrets/index.ts";

/** Member of `param` with the standard input of the commands. */
export const INPUT = "STDIN!";

/** The parsed `param` of one execution. */
export interface Parameters {
  /** Hosts from `HOST!`; absent: the job's own. */
  readonly hosts?: readonly string[];
  /** Groups from `GROUP!`; absent: the job's own. */
  readonly groups?: readonly string[];
  readonly timeoutSeconds?: number;
  readonly cmd?: string;
  /** Variables of the commands, and under `STDIN!`, which is no name of a variable, their standard input in base64. */
  readonly environment: Readonly<Record<string, string>>;
  /** Names of the parameters passed to the command. */
  readonly names: readonly string[];
}

/** Gifts of the caller to each command of a run. */
export interface CommandGifts {
  readonly environment: Readonly<Record<string, string>>;
  /** Absent: the standard input is empty. */
  readonly input?: Uint8Array;
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/**
 * Names of variables that control shells and programs. A parameter with such a name could make the command run
 * something else.
 */
const STEERING =
  /^(PATH|IFS|ENV|HOME|SHELL|USER|LOGNAME|PWD|OLDPWD|TERM|TMPDIR|CDPATH|PS\d|PROMPT_COMMAND|EDITOR|PAGER|COMSPEC|SYSTEMROOT|PATHEXT|LD_.*|DYLD_.*|BASH.*|NODE_.*|NPM_.*|PYTHON.*|PERL.*|RUBY.*|JAVA_.*|JDK_.*|GIT_.*|SSH_.*|GCONV_PATH|LOCPATH|NLSPATH|HOSTALIASES|ODP_.*)$/i;

/**
 * Parses `param`. Members whose name ends in `!` override settings of the job, or are the standard input. Each other member is passed to the
 * command as the environment variable `ODP_PARAM_<NAME>` (upper case, with `_` for other characters). It is passed
 * under its own name as well, if that is a valid variable name and does not control a program. The text never becomes
 * part of a command line.
 */
export function parseParameters(param: string | undefined): Parameters {
  if (param === undefined || param.trim() === "") return { environment: {}, names: [] };
  if (Buffer.byteLength(param) > JOB_PARAM_MAX_BYTES)
    throw new AppError("too_large", `param has more than ${JOB_PARAM_MAX_BYTES} bytes.`);
  const members = object(param);
  const hosts = namesOf(members, "HOST!", { one: "host", most: JOB_HOSTS_MAX });
  const groups = namesOf(members, "GROUP!", { one: "group", most: JOB_GROUPS_MAX });
  const timeoutSeconds = members["timeout"] === undefined ? undefined : seconds(members["timeout"]);
  const cmd = members["cmd"];
  return {
    environment: { ...environmentOf(members), ...inputOf(members[INPUT]) },
    names: Object.keys(members).filter((name) => name === INPUT || isGiven(name, members[name])),
    ...(hosts === undefined ? {} : { hosts }),
    ...(groups === undefined ? {} : { groups }),
    ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
    ...(typeof cmd === "string" ? { cmd } : {}),
  };
}

/** The members of a `param`, and the names of those that are passed to the command. */
export function givenNames(param: string | undefined): {
  readonly members: Readonly<Record<string, unknown>>;
  readonly names: readonly string[];
} {
  const { names } = parseParameters(param);
  return { members: param === undefined || param.trim() === "" ? {} : object(param), names };
}

/** The environment, sealed for one run. So a reader of the store cannot read the callers' values. */
export function sealedEnvironment(secrets: Pick<SecretBox, "seal">, of: Sealed): string {
  return secrets.seal(JSON.stringify(of.environment), contextOf(of));
}

export function openedGifts(
  secrets: Pick<SecretBox, "open">,
  of: Omit<Sealed, "environment">,
  sealed: string,
): CommandGifts {
  const opened = JSON.parse(secrets.open(sealed, contextOf(of))) as Record<string, string>;
  const { [INPUT]: input, ...environment } = opened;
  return { environment, ...(input !== undefined && { input: Buffer.from(input, "base64") }) };
}

interface Sealed {
  readonly tenant: string;
  readonly runId: string;
  readonly environment: Parameters["environment"];
}

function contextOf({ tenant, runId }: Omit<Sealed, "environment">): string {
  return `${tenant}/jobs/run/${runId}/environment`;
}

function object(param: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = parseJson(param);
  } catch (error) {
    throw new AppError("invalid", "param is no JSON.", { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new AppError("invalid", "param is no JSON object.");
  const lost = memberLeftOut(param);
  if (lost !== undefined)
    throw new AppError("invalid", `param has a member ${lost}, which would be lost. Choose another name.`);
  return { ...value };
}

/** The texts in a list of names; `undefined` if there is no such member. */
function namesOf(
  members: Readonly<Record<string, unknown>>,
  member: string,
  { one, most }: { readonly one: string; readonly most: number },
): readonly string[] | undefined {
  const value = members[member];
  if (value === undefined) return undefined;
  const texts = typeof value === "string" ? value.split(",") : value;
  if (!Array.isArray(texts) || !texts.every((text) => typeof text === "string")) {
    throw new AppError("invalid", `${member} in param is neither a ${one} name nor a list of them.`);
  }
  const names = [...new Set(texts.map((text) => text.trim()).filter((text) => text !== ""))];
  if (names.length === 0) throw new AppError("invalid", `${member} in param names no ${one}.`);
  if (names.length > most) throw new AppError("too_large", `A job runs on at most ${most} ${one}s.`);
  return names;
}

function seconds(value: unknown): number {
  const number = typeof value === "string" ? Number(value) : value;
  if (typeof number === "number" && Number.isFinite(number)) return number;
  throw new AppError("invalid", "timeout in param is no number of seconds.");
}

function environmentOf(members: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(members)) {
    if (!isGiven(name, value)) continue;
    const text = typeof value === "string" ? value : JSON.stringify(value);
    requireWellFormed(`${JSON.stringify(name)} in param`, text);
    if (text.includes("\0")) throw new AppError("invalid", `${JSON.stringify(name)} in param contains NUL.`);
    environment[`ODP_PARAM_${name.toUpperCase().replace(/[^A-Z0-9_]/g, "_")}`] = text;
    if (NAME.test(name) && !STEERING.test(name)) environment[name] = text;
  }
  return environment;
}

/** `STDIN!` is a text, or an object whose `base64` has bytes. */
function inputOf(value: unknown): Readonly<Record<string, string>> {
  if (value === undefined) return {};
  if (typeof value === "string") {
    requireWellFormed(`${INPUT} in param`, value);
    return { [INPUT]: Buffer.from(value).toString("base64") };
  }
  const base64 = typeof value === "object" && value !== null && "base64" in value ? value.base64 : undefined;
  if (typeof base64 !== "string" || !BASE64.test(base64))
    throw new AppError("invalid", `${INPUT} in param is neither a text nor {"base64": …} with base64.`);
  return { [INPUT]: base64 };
}

function isGiven(name: string, value: unknown): boolean {
  return !name.endsWith("!") && value !== null && name !== "";
}
