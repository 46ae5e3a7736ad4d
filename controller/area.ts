import type { SystemClass } from "./areas/objects/index.ts";
import type { Endpoint } from "./http/interface/endpoint.ts";
import type { Level } from "./http/interface/metrics.ts";
import type { SocketEndpoint } from "./http/sockets/socket.ts";
import type { HostObject } from "./scripting/index.ts";
import type { SealedKind } from "./secrets/index.ts";

/**
 * The parts that an area gives to its controller. `assembly/areas.ts` lists the areas, and `assembly.ts` loops over
 * them: every part stated here is served, registered, stored and ended without a further line elsewhere.
 */
export interface Area {
  readonly name: string;
  readonly endpoints?: readonly Endpoint[];
  readonly sockets?: readonly SocketEndpoint[];
  /** Registered before any tenant is opened. */
  readonly classes?: readonly SystemClass[];
  /** Objects for scripts. */
  readonly hostObjects?: readonly HostObject[];
  /** Sealed values of the area, sealed again when the key changes. Everything stored with `seal` must be listed. */
  readonly sealed?: readonly SealedKind[];
  /**
   * Contexts whose derived keys verify stored data, even after the key was replaced. The keys derived from former keys
   * are therefore retained.
   */
  readonly derivations?: readonly string[];
  /** Figures for `/metrics`. */
  readonly levels?: readonly Level[];
  /** Starts background work. Called after every tenant is repaired, before the ports open. */
  start?(): void;
  /**
   * Repairs work of a tenant that a crash interrupted. Called for each tenant before the ports open, in the order of
   * the areas, and followed by `maintain`.
   */
  repair?(tenant: string): Promise<void>;
  /**
   * Called for each tenant, every `MAINTENANCE_INTERVAL_MS` and when a controller has gone. Idempotent, and safe while
   * other controllers do the same.
   */
  maintain?(tenant: string): Promise<void>;
  /**
   * The tenant was deleted: its stores refuse every call from now on. Ends its open work on this controller and drops
   * its data in memory; a tenant of the same name may be created later. Idempotent.
   */
  leave?(tenant: string): Promise<void> | void;
  /** Keys of a tenant in the system's KvStore. They are removed with the tenant's data. */
  keysOf?(tenant: string): AsyncIterable<string>;
  /** Accepts no more work, and ends work that `maintain` may wait for. Called while everything else still runs. */
  stop?(): Promise<void> | void;
  /**
   * Called after the maintenance has ended, from the last area to the first: an area comes after those that it needs
   * until its end.
   */
  close?(): Promise<void> | void;
}

/** Parts of one kind from all areas, in the order of the areas. */
export function partsOf<Part>(
  areas: readonly Area[],
  part: (area: Area) => readonly Part[] | undefined,
): readonly Part[] {
  return areas.flatMap((area) => part(area) ?? []);
}

/** Closes the areas from the last to the first; see `Area.close`. */
export async function closeAreas(areas: readonly Area[]): Promise<void> {
  for (const area of [...areas].reverse()) await area.close?.();
}

/** Throws if two areas have the same name: one of the two entries would be a mistake. */
export function checkAreas(areas: readonly Area[]): readonly Area[] {
  const names = areas.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`The area ${twice} is listed twice.`);
  return areas;
}
