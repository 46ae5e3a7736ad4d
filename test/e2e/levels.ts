import { setTimeout } from "node:timers/promises";
import type { Installation } from "./installation.ts";

/** Pause of a client that calls again and again. Without it the client would use the processor for itself. */
export const CALL_EVERY_MS = 20;

/** Present value of a metric of the controller. */
export async function level(odp: Pick<Installation, "url">, name: string): Promise<number> {
  const text = await (await fetch(`${odp.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

/** Highest value of a metric until `over` returns true. */
export async function highest(odp: Pick<Installation, "url">, name: string, over: () => boolean): Promise<number> {
  let most = 0;
  while (!over()) {
    most = Math.max(most, await level(odp, name));
    await setTimeout(CALL_EVERY_MS);
  }
  return most;
}
