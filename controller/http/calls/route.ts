import type { Bound } from "../../../common/json-decoder.ts";
import {
  CALL_CHANGE_WAIT_MS,
  CALL_READ_WAIT_MS,
  HTTP_BODY_MAX_BYTES,
  HTTP_PUBLIC_BODY_MAX_BYTES,
} from "../../../common/limits.ts";
import { answerSender, type Sender } from "../answer/answer.ts";
import type { Endpoint } from "../interface/endpoint.ts";

/** One endpoint, with all that is the same for each of its calls. */
export interface Route {
  readonly endpoint: Endpoint;
  readonly isPublic: boolean;
  /** True if its calls may change something. They are recorded. */
  readonly isChange: boolean;
  /** Maximum bytes of a body whose caller is known. */
  readonly bodyBound: Bound;
  /** Time that a call may wait for stores that do not answer: more for a change, and for a call that may wait long. */
  readonly waitMs: number;
  readonly send: Sender;
}

export function routeOf(endpoint: Endpoint): Route {
  const { permission, deadlineMs } = endpoint;
  const isPublic = permission === "public";
  const isChange = !isPublic && !permission.endsWith(":read");
  return {
    endpoint,
    isPublic,
    isChange,
    bodyBound: bodyBoundOf(endpoint),
    waitMs: isChange || deadlineMs !== undefined ? CALL_CHANGE_WAIT_MS : CALL_READ_WAIT_MS,
    send: answerSender(endpoint),
  };
}

function bodyBoundOf({ bodyMaxBytes, permission }: Endpoint): Bound {
  if (bodyMaxBytes !== undefined) return { name: "bodyMaxBytes", max: bodyMaxBytes };
  if (permission === "public") return { name: "HTTP_PUBLIC_BODY_MAX_BYTES", max: HTTP_PUBLIC_BODY_MAX_BYTES };
  return { name: "HTTP_BODY_MAX_BYTES", max: HTTP_BODY_MAX_BYTES };
}
