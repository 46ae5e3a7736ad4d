import { AppError } from "../../../../common/errors.ts";
import type { JobOutputEnd, JobOutputPart } from "../../../../common/api/jobs.ts";
import type { Clock } from "../../../../common/time.ts";
import type { Row } from "../../../../common/value.ts";
import type { Stores } from "../../../store/engine.ts";
import { tail, type AppendNotifier, type Growing } from "../../../store/tail.ts";
import { idFromColumns, type Objects } from "../../objects/index.ts";
import { currentRights, requirePermission, type Principal } from "../../permissions/index.ts";
import { JOB_RUN_PATH } from "../classes.ts";
import { isGrowing } from "../runs/executions.ts";
import { beginningOf, type OutputPart } from "./part.ts";
import { JobOutputs, keyOf, type RunName } from "./outputs.ts";

export interface FollowingDependencies {
  readonly stores: Stores;
  readonly objects: Pick<Objects, "catalog" | "visible">;
  readonly clock: Clock;
  readonly appends: AppendNotifier;
}

/** The part of the output to follow, and the conditions under which following continues. */
export interface OutputReader extends OutputPart {
  readonly signal: AbortSignal;
  readonly present: () => Promise<Principal | undefined>;
}

/** Follows stored output of runs. The reader must be allowed to see the run and both columns of its output. */
export class OutputFollowing {
  readonly #outputs: JobOutputs;
  readonly #with: FollowingDependencies;

  constructor(dependencies: FollowingDependencies) {
    this.#outputs = new JobOutputs(dependencies.stores);
    this.#with = dependencies;
  }

  /**
   * The output from a position on. At the end of the run its end follows, unless `to` is reached before. Stops early
   * when the signal fires. `AppError("not_found")` if the principal sees no such run, and `AppError("denied")` if its
   * output is hidden from the principal. These are thrown before the first part, and later if rights change.
   */
  async follow(principal: Principal, run: RunName, reader: OutputReader): Promise<AsyncGenerator<JobOutputPart>> {
    requirePermission(principal, "jobs:read");
    await this.#visible(principal, run);
    return this.#parts(principal, run, reader);
  }

  async *#parts(
    principal: Principal,
    run: RunName,
    { signal, present, ...part }: OutputReader,
  ): AsyncGenerator<JobOutputPart> {
    const mayRead = currentRights(present, async (now) => void (await this.#visible(now, run)));
    const source = this.#source(principal.tenant, run);
    const from = await beginningOf(part, (offset, maxBytes) => source.read(offset, maxBytes));
    const last = part.to ?? Number.POSITIVE_INFINITY;
    if (from >= last) return;
    for await (const { from: at, to, bytes } of tail(source, { from, signal, mayRead, clock: this.#with.clock })) {
      const data = Buffer.from(bytes.subarray(0, last - at)).toString("base64");
      yield { from: at, to: Math.min(to, last), data };
      if (to >= last) return;
    }
    const now = signal.aborted ? undefined : await present();
    if (now !== undefined) yield { end: endOf(await this.#visible(now, run)) };
  }

  #source(tenant: string, run: RunName): Growing {
    return {
      read: (offset, maxBytes) => this.#outputs.read(tenant, run, { offset, maxBytes }),
      // A run is closed after its end is in the row, and the end is written after the last output.
      isOver: async () => !(await isGrowing(this.#with.stores, tenant, run)),
      onAppend: (callback) => this.#with.appends.on(keyOf(run), callback),
    };
  }

  /** The run's row, limited to what the principal may see. */
  async #visible(principal: Principal, run: RunName): Promise<Row> {
    requirePermission(principal, "jobs:read");
    const path = `${principal.ospace}${JOB_RUN_PATH}`;
    const catalog = await this.#with.objects.catalog(principal);
    const view = catalog.get(path);
    const id = view && idFromColumns(view, { runid: run.runId, host: run.host });
    const [object] = id === undefined ? [] : await this.#with.objects.visible.get(principal, [{ id, class: path }]);
    if (object === undefined) throw unknownRun(run);
    if (object.hidden.has("out") || object.hidden.has("err")) throw hiddenOutput();
    return object.values;
  }
}

function unknownRun({ runId, host }: RunName): AppError {
  return new AppError("not_found", `There is no run ${runId} on ${host}.`);
}

function hiddenOutput(): AppError {
  return new AppError("denied", "The output of runs is hidden from this user.");
}

function endOf({ status, code, signal, message }: Row): JobOutputEnd {
  return {
    state: typeof status === "string" ? status : "",
    message: typeof message === "string" ? message : "",
    ...(typeof code === "number" && { code }),
    ...(typeof signal === "string" && { signal }),
  };
}
