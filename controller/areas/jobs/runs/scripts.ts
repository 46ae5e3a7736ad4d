import { AppError, errorText, type ErrorCode } from "../../../../common/errors.ts";
import { JOB_SCRIPT_MAX_MS } from "../../../../common/limits.ts";
import type { Value } from "../../../../common/value.ts";
import type { Runtime } from "../../../runtime.ts";
import type { SecretBox } from "../../../secrets/index.ts";
import type { Stores } from "../../../store/engine.ts";
import { txnOnce } from "../../../store/once.ts";
import { Retry } from "../../../store/calls/retry.ts";
import { levelOf } from "../../consolelog/index.ts";
import type { FinalState } from "../../hosts/index.ts";
import { sharedRights, type Principal } from "../../permissions/index.ts";
import type { KeptScript } from "../../scripts/index.ts";
import { workOf, type RunExecutor } from "./executor.ts";
import { ReleasedError, LeaseLostError } from "./commands.ts";
import type { RunEndings } from "./endings.ts";
import type { ExecutionJournal, StageEnd, VersionedExecution } from "./executions.ts";
import { keyOf, outputNote } from "../output/outputs.ts";
import type { RunOutput } from "../output/output.ts";
import { openedGifts } from "../definitions/parameters.ts";
import type { Run } from "./plan.ts";
import { placeOf, type Stage } from "../definitions/stages.ts";
import type { Authors, HostRun } from "../types.ts";

/** Runs serverJS scripts. The area of scripts implements it. */
export interface ServerScripts {
  runOfJob(principal: Principal, script: KeptScript): Promise<Value | undefined>;
}

export interface ScriptDependencies {
  /** Absent: this controller runs no scripts. */
  readonly scripts?: ServerScripts;
  readonly authors?: Authors;
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly secrets: Pick<SecretBox, "open">;
  readonly executions: ExecutionJournal;
  readonly executor: RunExecutor;
  readonly endings: RunEndings;
}

/** A finished script: the entry with its end, and the end as callers get it. */
export interface StageRun {
  readonly held: VersionedExecution;
  readonly told: HostRun;
}

interface Outcome {
  readonly state: FinalState;
  readonly message: string;
}

const ERROR_LEVEL = levelOf("error");
/** Codes of errors that do not end a script: stores or controllers are unavailable, so the script runs again later. */
const PASSING: readonly ErrorCode[] = ["unavailable", "unknown_outcome"];
const STATE_OF_CODE: Readonly<Record<string, FinalState>> = { deadline: "timeout", cancelled: "cancelled" };

/**
 * The scripts of an execution. The end of each script is decided once, in the entry of the execution. The next step is
 * conditional on that entry. If a controller stops before the end is decided, another one runs the script again.
 */
export class ExecutionScripts {
  readonly #with: ScriptDependencies;
  readonly #retry: Retry;

  constructor(dependencies: ScriptDependencies) {
    this.#with = dependencies;
    this.#retry = new Retry(dependencies.runtime);
  }

  /**
   * Runs the script of that stage, unless its end is already decided. `undefined`: the job has no such script. An error
   * in the script is an end, too, and is not thrown, except for an error with a code of `PASSING`. Throws
   * `ReleasedError` if this controller stops, `LeaseLostError` if another one has continued the execution, and failures
   * of the stores.
   */
  async run(run: Run, held: VersionedExecution, stage: Stage, about: Value = {}): Promise<StageRun | undefined> {
    const text = held.open.scripts?.[stage];
    if (!text) return undefined;
    const known = held.open.stages?.[stage];
    if (known) return this.#settled(run, held, stage, known);
    const { executor, endings } = this.#with;
    const begun = await this.#begin(run, held, stage);
    const placed = { ...workOf(run, placeOf(stage)), attempt: begun.open.attempt };
    await endings.begin(placed);
    executor.publish(placed, { status: "running" });
    const output = executor.output(placed);
    try {
      const outcome = await this.#outcome(run, begun, { stage, text, about, output });
      const lost = await output.finish();
      if (this.#stopping.aborted) throw new ReleasedError(run.id);
      const message = lost === undefined ? outcome.message : `${outcome.message} (its output could not be stored)`;
      const end = endings.endOf(output, { ...outcome, message, endedMs: this.#with.runtime.clock.nowMs() });
      const ended = await this.#step(begun, { stages: { ...begun.open.stages, [stage]: end } });
      executor.publish(placed, { status: end.state, message: end.message });
      return await this.#settled(run, ended, stage, end, output.text);
    } finally {
      executor.appends.tell(keyOf(placed));
    }
  }

  get #stopping(): AbortSignal {
    return this.#with.executions.inFlight.stopping;
  }

  /**
   * Names this attempt's output as the valid one, in the same transaction as the step of the entry. So a controller
   * that has lost the execution changes nothing.
   */
  async #begin(run: Run, held: VersionedExecution, stage: Stage): Promise<VersionedExecution> {
    const { executions, stores } = this.#with;
    const step = executions.stepWithin(held, { startedMs: run.startedMs });
    const note = outputNote({ runId: run.id, host: placeOf(stage), attempt: held.open.attempt });
    const { kv } = await stores.tenant(run.order.principal.tenant);
    const { ok, revision } = await txnOnce(
      kv,
      {
        if: [{ key: step.key, revision: step.revision }],
        then: [{ kind: "put", key: step.key, value: step.value }, note],
      },
      (write) => this.#retry.run(write),
    );
    if (!ok) throw new LeaseLostError(run.id);
    return { open: step.open, revision };
  }

  async #step(held: VersionedExecution, changes: Parameters<ExecutionJournal["step"]>[1]): Promise<VersionedExecution> {
    const next = await this.#with.executions.step(held, changes);
    if (!next) throw new LeaseLostError(held.open.id);
    return next;
  }

  /** Records the end in its row. After that, the entry is stored without the output. */
  async #settled(
    run: Run,
    held: VersionedExecution,
    stage: Stage,
    end: StageEnd,
    output = `${end.out}${end.err}`,
  ): Promise<StageRun> {
    const host = placeOf(stage);
    if (!end.isSettled) await this.#with.endings.record(workOf(run, host), end);
    const settled: StageEnd = { ...end, out: "", err: "", isSettled: true };
    return {
      held: { ...held, open: { ...held.open, stages: { ...held.open.stages, [stage]: settled } } },
      told: { host, state: end.state, message: end.message, output },
    };
  }

  async #outcome(run: Run, { open }: VersionedExecution, of: Running): Promise<Outcome> {
    const { order } = run;
    const say = (text: string, stderr: boolean): void => {
      if (this.#stopping.aborted || text === "") return;
      const piece = { stderr, data: Buffer.from(text.endsWith("\n") ? text : `${text}\n`) };
      of.output.take(piece);
      run.watcher?.onOutput?.(placeOf(of.stage), piece);
    };
    try {
      const principal = await this.#rights(order.principal, open.scripts?.author ?? "");
      const answer = await this.#runAs(principal, run, of, (level, text) => say(text, level >= ERROR_LEVEL));
      if (answer !== undefined) say(typeof answer === "string" ? answer : JSON.stringify(answer), false);
      return { state: "ok", message: "" };
    } catch (error) {
      if (!(error instanceof AppError) || PASSING.includes(error.code)) throw error;
      const message = errorText(error);
      say(message, true);
      return { state: STATE_OF_CODE[error.code] ?? "failed", message };
    }
  }

  #runAs(
    principal: Principal,
    run: Run,
    { stage, text, about }: Running,
    onSaid: (level: number, message: string) => void,
  ): Promise<Value | undefined> {
    const { scripts } = this.#with;
    if (!scripts) throw new AppError("unsupported", "This controller runs no scripts.");
    const { order, watcher } = run;
    // The script `end` undoes the work of a cancelled run, so the cancel must not end it.
    const isCancelled = stage !== "end" && watcher?.signal;
    return scripts.runOfJob(principal, {
      name: `${order.name}/${stage}`,
      text,
      isFile: stage === "serverjs" && text.startsWith("/") && !/\s/.test(text),
      input: { ...this.#inputOf(run), stage, ...(about as object) },
      timeoutMs: Math.min(JOB_SCRIPT_MAX_MS, run.deadlineMs - run.startedMs),
      signal: isCancelled ? AbortSignal.any([this.#stopping, isCancelled]) : this.#stopping,
      onSaid,
    });
  }

  #inputOf({ id, order, startedMs }: Run): { readonly [member: string]: Value } {
    const { principal, name, dir, sid, hosts, sealed } = order;
    const { environment: env } = openedGifts(this.#with.secrets, { tenant: principal.tenant, runId: id }, sealed);
    return { runid: id, sid, name, dir, user: principal.user, hosts: [...hosts], stime: startedMs, env };
  }

  /** The rights that the caller had at the request and that the author has now, both together (`sharedRights`). */
  async #rights(caller: Principal, author: string): Promise<Principal> {
    const present = await this.#with.authors?.present(caller.tenant, author);
    if (present) return sharedRights(caller, present);
    throw new AppError("denied", `The user ${author}, who saved the scripts of the job, is not there any more.`);
  }
}

interface Running {
  readonly stage: Stage;
  readonly text: string;
  readonly about: Value;
  readonly output: RunOutput;
}
