import { beforeEach } from "vitest";
import type { AppError } from "../../../common/errors.ts";
import type { Row } from "../../../common/value.ts";
import { noClasses } from "../objects/memory/objects.ts";
import { MemoryStores } from "../engines/memory/stores.ts";
import { TEST_SECRETS, TestClock, testPrincipal, testRuntime } from "../time/runtime.ts";
import type { CommandOutcome, DispatchOptions, HostCommand } from "../../../controller/areas/hosts/index.ts";
import type { Notification } from "../../../controller/areas/notifications/index.ts";
import type { ObjectRow, Objects, UnrestrictedObjects } from "../../../controller/areas/objects/index.ts";
import { JobRuns } from "../../../controller/areas/jobs/runs/runs.ts";
import { JobService } from "../../../controller/areas/jobs/service.ts";
import { NAMED_HOSTS } from "../hosts/named-hosts.ts";

/** Jobs of one controller in memory, on hosts that behave as a test says. */

export const admin = testPrincipal();

type Exec = Extract<HostCommand, { kind: "exec" }>;
interface Sent extends DispatchOptions {
  readonly tenant: string;
  readonly host: string;
  readonly command: Exec;
}

/** Hosts that behave as a test says; by default they succeed at once. */
class FakeHosts {
  readonly sent: Sent[] = [];
  behaviour: (sent: Sent) => Promise<Partial<CommandOutcome>> | Partial<CommandOutcome> = () => ({});

  async dispatch(
    principal: { tenant: string },
    host: string,
    command: HostCommand,
    options: DispatchOptions,
  ): Promise<CommandOutcome> {
    if (command.kind !== "exec") throw new Error("not for jobs");
    const sent = { ...options, tenant: principal.tenant, host, command };
    this.sent.push(sent);
    return { host, state: "ok", code: 0, message: "", startedMs: 1, endedMs: 2, ...(await this.behaviour(sent)) };
  }
}

/** Rows of job runs, with the functions that runs use of objects. The write with the later time wins, in any order. */
class FakeRows {
  readonly catalog: Objects["catalog"] = (principal) => noClasses().catalog(principal);
  readonly visible = noClasses().visible;
  readonly rows = new Map<string, Record<string, Row[string] | undefined>>();
  readonly #times = new Map<string, number>();
  failures: AppError[] = [];
  readonly unrestricted: Pick<UnrestrictedObjects, "get" | "insert"> = this;

  insert(
    _principal: unknown,
    path: string,
    rows: readonly Row[],
    options: { readonly atMs?: number | readonly number[] } = {},
  ): Promise<readonly string[]> {
    const failure = rows.some((row) => row["status"] !== "running") ? this.failures.shift() : undefined;
    if (failure) return Promise.reject(failure);
    const ids = rows.map((row, at) => {
      const id = ["runid", "host", "place"].reduce((text, key) => `${text}:${String(row[key] ?? "")}`, path);
      const given = typeof options.atMs === "object" ? options.atMs[at] : options.atMs;
      const [atMs, lastMs] = [given ?? 0, this.#times.get(id) ?? -1];
      this.rows.set(id, {
        ...(atMs >= lastMs ? { ...this.rows.get(id), ...row } : { ...row, ...this.rows.get(id) }),
        class: path,
      });
      this.#times.set(id, Math.max(atMs, lastMs));
      return id;
    });
    return Promise.resolve(ids);
  }

  get(_principal: unknown, refs: readonly { readonly id: string }[]): Promise<readonly (ObjectRow | undefined)[]> {
    return Promise.resolve(
      refs.map(({ id }) => {
        const values = this.rows.get(id);
        return values && ({ id, values } as unknown as ObjectRow);
      }),
    );
  }

  of(host: string) {
    return [...this.rows.values()].filter(
      (row) => row["host"] === host && String(row["class"]).endsWith("/jobs/jobrun"),
    );
  }
}

export let clock: TestClock;
export let stores: MemoryStores;
export let hosts: FakeHosts;
export let rows: FakeRows;
export let published: Notification[];
export let jobs: JobService;
/** The runs of controller `a`. */
export let runs: JobRuns;

/** Makes stores, hosts and a controller for each test of the calling file. */
export function useJobs(): void {
  beforeEach(() => {
    clock = new TestClock();
    stores = new MemoryStores();
    hosts = new FakeHosts();
    rows = new FakeRows();
    published = [];
    jobs = new JobService({ targets: NAMED_HOSTS, stores, runtime: testRuntime(clock), objects: noClasses() });
    runs = newRuns();
  });
}

/** Controllers that are alive. */
const PRESENT = new Set(["a", "b"]);

/** Returns the runs of a controller over the same stores. */
export const newRuns = (
  own = "a",
  over: { readonly clock?: TestClock; readonly hosts?: FakeHosts; readonly objects?: FakeRows } = {},
) =>
  new JobRuns({
    targets: NAMED_HOSTS,
    secrets: TEST_SECRETS,
    stores,
    jobs,
    runtime: testRuntime(over.clock ?? clock),
    hosts: over.hosts ?? hosts,
    objects: over.objects ?? rows,
    stored: { outcome: () => Promise.resolve(undefined) },
    notifications: { publish: (_tenant, notification) => void published.push(notification) },
    controllers: { own, has: (id) => PRESENT.has(id) },
    runsInFlightMax: 256,
  });

/** Saves the job `backup@common/x`. */
export const define = (more: Partial<Parameters<JobService["save"]>[1]> = {}) =>
  jobs.save(admin, { name: "backup", dir: "common/x", exec: ["run-backup"], host: ["h1"], ...more });
/** Executes `remote_command` with these parameters. */
export const remote = (param: object, more: { timeoutSeconds?: number } = {}) =>
  runs.execute(admin, "remote_command@system/common", { param: JSON.stringify(param), ...more });
/** Returns a piece of output. */
export const text = (data: string, stderr = false) => ({ stderr, data: new TextEncoder().encode(data) });
export const never = () => new Promise<never>(() => {});
/** Returns the keys of runs that are open. */
export const openKeys = () => stores.keys("matrix", "jobs/open/");
/** Waits until the code under test waits for the clock. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));
