import type { Static } from "typebox";
import type { ScrubReport as Report, ScrubStatus as Status } from "../../common/api/cluster.ts";
import type { OdpClient } from "../../common/client/index.ts";
import { counted } from "../../common/text/counted.ts";

type ScrubReport = Static<typeof Report>;
type ScrubStatus = Static<typeof Status>;

export interface ScrubCall {
  readonly client: Pick<OdpClient, "call">;
  /** Resolves when it is time for another look, or the caller goes. */
  readonly pause: () => Promise<void>;
  /** Fires when the caller goes; the scrub goes on. */
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
}

/** Begins a scrub, or joins the one under way, and follows it to its end; `undefined` when the caller went. */
export async function followScrub(of: ScrubCall, rate?: number): Promise<ScrubReport | undefined> {
  const under = (await statusOf(of.client)).running;
  if (under === undefined) await of.client.call("postClusterScrub", { query: { ...(rate !== undefined && { rate }) } });
  else of.note(`a scrub that ${under.user} began is under way`);
  for (let told = ""; !of.signal.aborted; await of.pause()) {
    const { running, last } = await statusOf(of.client);
    if (running === undefined) return last;
    const progress = progressOf(running);
    if (progress !== told) of.note(progress);
    told = progress;
  }
  return undefined;
}

export async function statusOf(client: Pick<OdpClient, "call">): Promise<ScrubStatus> {
  return (await client.call("getClusterScrub")) as ScrubStatus;
}

/** One line. */
export function progressOf({ step, looked, bytes, missing, superfluous, damaged }: ScrubReport): string {
  const { objects, indexes, sources, targets, contents } = looked;
  const seen = `${counted(objects, "object")}, ${counted(indexes, "row")} of indexes, ${sources} and ${targets} ends of edges, ${contents} contents (${bytes} bytes)`;
  return `${step}: ${seen}; ${missing} missing, ${superfluous} superfluous, ${damaged} damaged`;
}

/** 2: the last scrub or a round of the row check found damage. */
export function statusExitCodeOf({ last, rows }: ScrubStatus): number {
  return [last, rows.running, rows.last].some((report) => (report?.damaged ?? 0) > 0) ? 2 : 0;
}

/** 0: sound or mended, 2: a content is damaged or the scrub did not come to its end. */
export function exitCodeOf({ state, damaged }: ScrubReport): number {
  return state === "done" && damaged === 0 ? 0 : 2;
}
