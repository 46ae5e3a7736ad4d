import { Type } from "typebox";
import {
  WaitingDetails,
  WaitingList,
  WaitingListed,
  WaitingSelect,
  type WaitingBegun,
} from "../../../../common/api/depots.ts";
import { AppError } from "../../../../common/errors.ts";
import { lengthMs } from "../../../../common/text/length-of-time.ts";
import { endpoint, type Endpoint } from "../../../http/interface/endpoint.ts";
import type { WaitingDetails as Details, WaitingDeployments } from "./service.ts";
import type { WaitingDeployment, WaitingHost } from "./types.ts";

export function waitingRoutes(waiting: WaitingDeployments): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/monitoring/deployment",
      permission: "depots:read",
      summary: "Lists deployments that wait for hosts, and those that did, the newest first",
      input: WaitingList,
      output: Type.Array(WaitingListed),
      handler: async ({ principal }) => ({
        message: (await waiting.list(principal)).map(({ deployment, isOpen }) => ({
          ...begunOf(deployment),
          state: isOpen ? ("open" as const) : ("ended" as const),
        })),
      }),
    }),
    endpoint({
      method: "GET",
      path: "/monitoring/deployment/:id",
      permission: "depots:read",
      summary: "State of each host of a deployment that waits",
      input: WaitingSelect,
      output: WaitingDetails,
      handler: async ({ principal, input }) => ({ message: detailsOf(await waiting.get(principal, input.id)) }),
    }),
    endpoint({
      method: "DELETE",
      path: "/monitoring/deployment/:id",
      permission: "depots:run",
      summary: "Cancels a deployment on the hosts that it waits for",
      input: WaitingSelect,
      output: WaitingDetails,
      handler: async ({ principal, input }) => ({ message: detailsOf(await waiting.cancel(principal, input.id)) }),
    }),
  ];
}

/** Milliseconds of the member `wait` of a call. `undefined`: the call does not wait. */
export function waitMsOf(wait: string | undefined): number | undefined {
  if (wait === undefined || wait === "") return undefined;
  const waitMs = lengthMs(wait);
  if (waitMs === undefined) throw new AppError("invalid", `wait is a time such as 30m, 2h or 1d, not ${wait}.`);
  return waitMs;
}

export function begunOf(of: WaitingDeployment): WaitingBegun {
  const { deployment, action, depots, user, createdMs, untilMs, cancelledBy } = of;
  return {
    ...{ id: deployment, action, depots: [...depots], username: user, createdMs, untilMs },
    ...(cancelledBy !== undefined && { cancelledBy }),
  };
}

function detailsOf({ deployment, hosts }: Details): WaitingDetails {
  return { ...begunOf(deployment), hosts: hosts.map(hostOf) };
}

function hostOf({ host, state, sinceMs, outcomes }: WaitingHost): WaitingDetails["hosts"][number] {
  const fault = outcomes.find((one) => one.state !== "ok");
  const message =
    fault?.message ?? (state === "waiting" ? "The host is away, or gets an earlier deployment first." : "");
  return { host, state, message, sinceMs, outcomes: [...outcomes] };
}
