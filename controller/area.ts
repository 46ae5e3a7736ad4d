import type { SystemClass } from "./areas/objects/index.ts";
import type { Endpoint } from "./http/endpoint.ts";
import type { Level } from "./http/metrics.ts";
import type { SocketEndpoint } from "./http/socket.ts";
import type { HostObject } from "./scripting/index.ts";
import type { SealedKind } from "./secrets/index.ts";

/**
 * What an area gives to the controller that holds it. `assembly.ts` makes the services, lists the areas and loops over
 * them: a part that an area states here is served, registered, kept and ended without another line elsewhere.
 */
export interface Area {
  readonly name: string;
  readonly endpoints?: readonly Endpoint[];
  readonly sockets?: readonly SocketEndpoint[];
  /** Registered before any tenant is opened. */
  readonly classes?: readonly SystemClass[];
  /** What scripts find of it. */
  readonly hostObjects?: readonly HostObject[];
  /** What it keeps sealed: sealed anew when the key changes. Whatever is stored with `seal` belongs here. */
  readonly sealed?: readonly SealedKind[];
  /**
   * What it derives of a key by these contexts proves what it keeps, also when the key is not there any more: these
   * parts of former keys are kept.
   */
  readonly derivations?: readonly string[];
  /** For `/metrics`. */
  readonly levels?: readonly Level[];
  /** Begins what runs by itself; called when every tenant is repaired, before the ports open. */
  start?(): void;
  /**
   * Repairs what a crash left half done in a tenant; called for each tenant before the ports open, in the order of the
   * areas. `maintain` is called after it.
   */
  repair?(tenant: string): Promise<void>;
  /**
   * Recurs for each tenant, every `MAINTENANCE_INTERVAL_MS` and when a controller went. Idempotent, and safe while
   * other controllers do the same.
   */
  maintain?(tenant: string): Promise<void>;
  /**
   * The tenant was deleted: its stores refuse every call from now on. Ends what is open of it on this controller and
   * forgets what is kept of it in memory; a tenant of the same name may come later. Idempotent.
   */
  leave?(tenant: string): Promise<void> | void;
  /** What the area keeps of a tenant in the system's KvStore: keys that go when its data is removed. */
  keysOf?(tenant: string): AsyncIterable<string>;
  /**
   * Takes up no work any more, and ends what `maintain` may be waiting for; called while everything else still runs.
   */
  stop?(): Promise<void> | void;
  /**
   * Called after the maintenance has ended, from the last area to the first: what an area needs until its end stands
   * before it.
   */
  close?(): Promise<void> | void;
}

/** What all areas of a kind give together, in their order. */
export function partsOf<Part>(
  areas: readonly Area[],
  part: (area: Area) => readonly Part[] | undefined,
): readonly Part[] {
  return areas.flatMap((area) => part(area) ?? []);
}

/** Ends the areas from the last to the first; see `Area.close`. */
export async function closeAreas(areas: readonly Area[]): Promise<void> {
  for (const area of [...areas].reverse()) await area.close?.();
}

/** Refuses areas of the same name: one of them would be a forgotten line. */
export function checkAreas(areas: readonly Area[]): readonly Area[] {
  const names = areas.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`The area ${twice} is listed twice.`);
  return areas;
}
