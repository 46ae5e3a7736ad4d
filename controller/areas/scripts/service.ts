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

/** A script as a client asks for it: a file when there is a path, else the text. */
export interface ScriptRequest {
  readonly filepath?: string | undefined;
  readonly text?: string | undefined;
  /** Whether the text is a path; absent: by its looks. */
  readonly isFile?: boolean | undefined;
  readonly input?: Value | undefined;
  /** The file is in the system's space, which only administrators name. */
  readonly system?: boolean | undefined;
  readonly signal?: AbortSignal;
}

interface Script {
  readonly name: string;
  readonly source: string;
}

/** A script that another service keeps and runs. */
export interface KeptScript {
  /** For errors and the console log. */
  readonly name: string;
  /** The text, or where `isFile` the path of a file. */
  readonly text: string;
  readonly isFile: boolean;
  readonly input: Value;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Told of what it says, as it does. */
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

/** Texts that are not a file have this name in errors and console logs; they are open to whom all of `/script` is. */
const UNNAMED = "/inline.js";

/** serverJS: files below `/script`, and texts, run with the rights of their caller. */
export class ScriptService {
  readonly #with: Dependencies;
  readonly #logs: RunLogs;

  constructor(dependencies: Dependencies) {
    const { logs, runtime } = dependencies;
    this.#with = dependencies;
    this.#logs = new RunLogs({ kind: "serverjs", logs, runtime }, SCRIPT_LOG_BOUNDS);
  }

  /**
   * What the script put into OUTPUT; undefined when nothing. Its console log has what it said, and its failure. A run
   * that changed something, but for what services record by themselves, leaves one audit entry. Errors: those of
   * `ScriptEngine.run`; `not_found` for a file that is not there.
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

  /** As `run`, of a script of a job: whoever may run the job runs its texts; a file must be open to the principal. */
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

  /** What scripts of a kind find, by name. */
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

  /** The first that is there. */
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
      // Who may run scripts need not read files; which of them he may run, their grants say.
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

/** Grants name a script as clients do, below `/script`, or as a file. */
function requireOpen(principal: Principal, names: readonly string[]): void {
  const open = names.some((name) => pathAllowed(principal, name) || pathAllowed(principal, filePath(name)));
  if (!open) requirePath(principal, filePath(names[0] ?? ""));
}

interface RunOptions {
  readonly engine: ScriptEngine;
  readonly globals: Readonly<Record<string, Value>>;
  /** In which spaces it finds what it requires. */
  readonly order: SpaceOrder;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onSaid: KeptScript["onSaid"];
}
