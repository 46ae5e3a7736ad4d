import { join } from "node:path";
import { Etcd } from "../../controller/store/cluster/etcd/etcd.ts";
import { EtcdKvStore } from "../../controller/store/cluster/etcd/kv.ts";
import { decodeStored } from "../../controller/store/format.ts";
import type { ClusterSettings } from "../../deploy/local/cluster.ts";
import { clusterRuntime } from "../helpers/cluster/admin.ts";
import { addressOf, openProxy, type LinkProxy } from "../helpers/cluster/proxy.ts";
import { eventually } from "../helpers/programs/programs.ts";
import { clusterVariables, Installation } from "./installation.ts";

const CONTROLLERS = 3;
const FOUND_DEADLINE_MS = 60_000;

/** `unanswered`: its requests reach etcd, but the answers are lost. */
export type Blow = "killed" | "paused" | "cut off" | "unanswered";

/** A controller with a separate link to etcd. */
interface Seat {
  readonly odp: Installation;
  readonly link: LinkProxy;
}

/** A life of a controller. */
interface Leader {
  readonly id: string;
  readonly seat: Seat;
}

/** Three controllers as processes over one etcd and Cassandra. */
export class Trio implements AsyncDisposable {
  readonly #seats: readonly Seat[];
  readonly #etcd: Etcd;
  readonly #kv: EtcdKvStore;
  #returning: Promise<void> = Promise.resolve();

  private constructor(seats: readonly Seat[], etcd: Etcd, prefix: string) {
    this.#seats = seats;
    this.#etcd = etcd;
    this.#kv = new EtcdKvStore(etcd, `${prefix}/tenant/system/`);
  }

  static async start(cluster: ClusterSettings): Promise<Trio> {
    const { ODP_CLUSTER_PREFIX: prefix = "", ...shared } = clusterVariables(cluster);
    const [endpoint = ""] = cluster.etcdEndpoints;
    const seats: Seat[] = [];
    for (let n = 0; n < CONTROLLERS; n++) {
      const link = await openProxy(addressOf(endpoint));
      const [first] = seats;
      const odp = await Installation.begin({
        ...{ ...shared, ODP_CLUSTER_PREFIX: prefix, ODP_ETCD_ENDPOINTS: `http://127.0.0.1:${link.port}` },
        ...(first && { ODP_SECRET_KEY_FILE: join(first.odp.folder, "secret.key") }),
      });
      seats.push({ odp, link });
    }
    await Promise.all(seats.map(({ odp }) => odp.ready()));
    return new Trio(seats, new Etcd(cluster.etcdEndpoints, clusterRuntime), prefix);
  }

  /** Waits until all controllers are back, and returns one of them. */
  async any(): Promise<Installation> {
    await this.#returning;
    const [first] = this.#seats;
    if (!first) throw new Error("There is no controller.");
    return first.odp;
  }

  /** Waits for a controller that fires schedules and is not in the same life as `before`. */
  async #leader(before?: Leader): Promise<Leader> {
    return eventually("a controller fires schedules", FOUND_DEADLINE_MS, async () => {
      const at = await this.#kv.get("jobs/scheduler");
      const id = at && decodeStored<{ readonly controller: string }>(at.value).controller;
      if (id === undefined || id === before?.id) return undefined;
      const member = await this.#kv.get(`controllers/${id}`);
      const url = member && decodeStored<{ readonly url: string }>(member.value).url;
      const seat = this.#seats.find(({ odp }) => odp.url === url);
      return seat && { id, seat };
    });
  }

  /** Strikes the leader until another one leads. A killed leader restarts meanwhile; the others recover afterwards. */
  async strike(blow: Blow): Promise<void> {
    await this.#returning;
    const struck = await this.#leader();
    const { odp, link } = struck.seat;
    const { controller } = odp;
    if (blow === "killed") {
      await controller.kill("SIGKILL");
      this.#returning = odp.startController();
      this.#returning.catch(() => undefined);
    } else if (blow === "paused") process.kill(controller.pid, "SIGSTOP");
    else link.set(blow === "cut off" ? "cut" : "answers_lost");
    try {
      await this.#leader(struck);
    } finally {
      if (blow === "paused") process.kill(controller.pid, "SIGCONT");
      link.set("open");
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#returning.catch(() => undefined);
    // All are killed at once, so that none takes over the work of the others.
    await Promise.all(this.#seats.map(({ odp }) => odp.controller.kill("SIGKILL")));
    for (const { odp, link } of this.#seats) {
      await odp.stop();
      await link[Symbol.asyncDispose]();
    }
    this.#etcd.close();
  }
}
