import { AppError } from "../../../common/errors.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { namesIn } from "./definition.ts";
import { GroupStore } from "./group-store.ts";
import { formatJobName } from "./names.ts";
import type { StoredJob } from "./store.ts";

/** What the definitions of jobs say of where they run. */
export class JobTargets {
  readonly #stores: Stores;
  readonly #runtime: Runtime;

  constructor({ stores, runtime }: { readonly stores: Stores; readonly runtime: Runtime }) {
    this.#stores = stores;
    this.#runtime = runtime;
  }

  /** The job's own hosts, then those its groups have now, each once. `AppError("not_found")` for a group that is not there. */
  async of(tenant: string, job: Pick<StoredJob, "name" | "dir" | "host" | "group">): Promise<readonly string[]> {
    const names = namesIn(job.group.split(","));
    if (names.length === 0) return job.host;
    const groups = new GroupStore((await this.#stores.tenant(tenant)).kv, this.#runtime);
    const hosts = await Promise.all(names.map((name) => hostsOf(groups, name, formatJobName(job))));
    return [...new Set([...job.host, ...hosts.flat()])];
  }
}

async function hostsOf(groups: GroupStore, name: string, job: string): Promise<readonly string[]> {
  const found = await groups.read({ gtype: "group", name });
  if (found) return found.group.hosts.map(({ host }) => host);
  if (await groups.read({ gtype: "proxy", name }))
    throw new AppError(
      "unsupported",
      `The job ${job} runs on the group ${name} of type proxy, which jobs do not use yet.`,
    );
  throw new AppError("not_found", `The job ${job} runs on the group ${name}, which is not there.`);
}
