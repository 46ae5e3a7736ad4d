import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { SCRIPT_RUN_DEADLINE_MS } from "../../../common/limits.ts";
import type { Value } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import type { FunctionDescription, HostObjects, ScriptEngine, ScriptKind } from "../../scripting/index.ts";
import { audited, type RunTrail } from "../audit/index.ts";
import { RunLogs, SCRIPT_LOG_BOUNDS, type ConsoleLogService } from "../consolelog/index.ts";
import { requireSpace, type FileService } from "../files/index.ts";
import {
  pathAllowed,
  requireMayChange,
  requirePath,
  requirePermission,
  systemPrincipal,
  type Principal,
} from "../permissions/index.ts";
import {
  candidates,
  fileNames,
  filePath,
  isPath,
  requiredPaths,
  scriptPath,
  startUpScript,
  type SpaceOrder,
} from "./paths.ts";

/** A script as a client requests it: a file if `filepath` is given, otherwise the text. */
export interface ScriptRequest {
  readonly filepath?: string | undefined;
  readonly text?: string | undefined;
  /** True if the text is a path. Absent: decided by the form of the text. */
  readonly isFile?: boolean | undefined;
  readonly input?: Value | undefined;
  /** True if the file is in the system's space, which only administrators may name. */
  readonly system?: boolean | undefined;
  readonly signal?: AbortSignal;
}

interface Script {
  readonly name: string;
  readonly source: string;
}

/** A script that another service stores and runs. */
export interface KeptScript {
  /** Name in errors and in the console log. */
  readonly name: string;
  /** The script text, or the path of a file if `isFile`. */
  readonly text: string;
  readonly isFile: boolean;
  readonly input: Value;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Called with each message of the script as it occurs. */
  readonly onSaid: (level: number, message: string) => void;
}

interface Dependencies {
  /** Absent: this controller runs no scripts. */
  readonly engine: ScriptEngine | undefined;
  readonly hostObjects: () => HostObjects;
  readonly files: Pick<FileService, "readFirst">;
  readonly logs: Pick<ConsoleLogService, "append">;
  readonly audit: RunTrail;
  readonly runtime: Runtime;
}

/** Name of texts without a file in errors and console logs. Users with access to all of `/script` may run them. */
const UNNAMED = "/inline.js";

/** serverJS: runs files below `/script` and texts with the rights of the caller. */
export class ScriptService {
  readonly #with: Dependencies;
  readonly #logs: RunLogs;

  constructor(dependencies: Dependencies) {
    const { logs, runtime } = dependencies;
    this.#with = dependencies;
    this.#logs = new RunLogs({ kind: "serverjs", logs, runtime }, SCRIPT_LOG_BOUNDS);
  }

  /**
   * Returns the value that the script put into OUTPUT; `undefined` if none. The console log gets its messages and its
   * failure. A run that changed data writes one audit entry, unless the service that made the change records it itself.
   * Errors: those of `ScriptEngine.run`; `not_found` if the file does not exist.
   */
  async run(principal: Principal, request: ScriptRequest): Promise<Value | undefined> {
    requirePermission(principal, "scripts:read");
    requireMayChange(principal);
    const { engine } = this.#with;
    if (!engine) throw new AppError("unsupported", "This controller runs no scripts.");
    const { signal, input = "", system = false } = request;
    requireSpace(principal, system ? "system" : "user");
    return this.#run(principal, await this.#requested(principal, request), {
      engine,
      signal,
      globals: { INPUT: typeof input === "string" ? input : JSON.stringify(input), input },
      order: system ? "system first" : "users first",
      timeoutMs: SCRIPT_RUN_DEADLINE_MS,
      onSaid: () => undefined,
    });
  }

  /**
   * As `run`, for a script of a job. The right to run the job covers its texts; a file must be open to the principal.
   */
  async runOfJob(
    principal: Principal,
    { name, text, isFile, input, ...options }: KeptScript,
  ): Promise<Value | undefined> {
    requirePermission(principal, "jobs:run");
    requireMayChange(principal);
    const { engine } = this.#with;
    if (!engine) throw new AppError("unsupported", "This controller runs no scripts.");
    const order = "users first";
    const script = isFile ? await this.#first(principal, [text], order) : { name, source: text };
    return this.#run(principal, script, { ...options, engine, globals: { INPUT: input, input }, order });
  }

  /** Functions available to scripts of a kind, by name. */
  functions(principal: Principal, kind: ScriptKind): readonly FunctionDescription[] {
    requirePermission(principal, kind === "rule" ? "rules:read" : "scripts:read");
    return this.#with.hostObjects().described(kind);
  }

  async #run(principal: Principal, { name, source }: Script, options: RunOptions): Promise<Value | undefined> {
    const { audit, hostObjects } = this.#with;
    const { engine, globals, signal, order, timeoutMs, onSaid } = options;
    const log = this.#logs.begin();
    const host = hostObjects().bind({
      principal,
      kind: "serverjs",
      log: (level, message) => {
        log.add(level, message);
        onSaid(level, message);
      },
      beforeChange: () => audit.ready(principal.tenant),
      load: (path, from) => this.#first(principal, requiredPaths(path, from), order),
    });
    const call = {
      tenant: principal.tenant,
      kind: "serverjs",
      user: principal.user,
      language: "javascript",
      name,
      source,
      globals,
      results: ["OUTPUT"],
      timeoutMs,
      depth: principal.scriptDepth ?? 0,
      ...(signal && { signal }),
    } as const;
    const run = { principal, kind: "SCRIPT", object: name, permission: "scripts:read", host } as const;
    return audited(audit, run, async (recorded) => {
      try {
        return (await engine.run(call, recorded)).results["OUTPUT"];
      } catch (error) {
        log.fail(errorText(error));
        throw error;
      } finally {
        await this.#logs.keep(principal, name, log);
      }
    });
  }

  async #requested(principal: Principal, { filepath, text, isFile, system = false }: ScriptRequest): Promise<Script> {
    const order = system ? "system" : "users first";
    if (filepath !== undefined && filepath.trim() !== "") return this.#first(principal, [filepath], order);
    if (text === undefined || text.trim() === "")
      throw new AppError("invalid", "There is no script: give the path of a file as filepath, or a text as the body.");
    if (isFile ?? isPath(text)) return this.#first(principal, [text], order);
    requireOpen(principal, [UNNAMED]);
    return { name: UNNAMED, source: text };
  }

  /** Returns the first script that exists. */
  async #first(principal: Principal, paths: readonly string[], order: SpaceOrder): Promise<Script> {
    for (const path of paths) {
      const found = await this.#find(principal, path, order);
      if (found === undefined) continue;
      requireOpen(principal, [found.name, ...paths]);
      return found;
    }
    throw new AppError("not_found", `There is no script ${paths[0]}.`);
  }

  async #find(principal: Principal, path: string, order: SpaceOrder): Promise<Script | undefined> {
    const { tenant, ospace, traceparent } = principal;
    const tried = candidates(path, ospace);
    try {
      // Running scripts does not require the right to read files; grants decide which scripts the user may run.
      const reader = systemPrincipal(tenant, ospace, traceparent);
      const { text, fullname } = await this.#with.files.readFirst(reader, fileNames(tried, ospace, order));
      return { name: scriptPath(fullname), source: text };
    } catch (error) {
      if (!isAppError(error, "not_found")) throw error;
    }
    for (const name of tried) {
      const source = startUpScript(name, ospace);
      if (source !== undefined) return { name, source };
    }
    return undefined;
  }
}

/** Grants name a script as clients do (below `/script`) or as a file. */
function requireOpen(principal: Principal, names: readonly string[]): void {
  const open = names.some((name) => pathAllowed(principal, name) || pathAllowed(principal, filePath(name)));
  if (!open) requirePath(principal, filePath(names[0] ?? ""));
}

interface RunOptions {
  readonly engine: ScriptEngine;
  readonly globals: Readonly<Record<string, Value>>;
  /** Order of the spaces for its `require` calls. */
  readonly order: SpaceOrder;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onSaid: KeptScript["onSaid"];
}
