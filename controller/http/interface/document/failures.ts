import { ERROR_CODES, type ErrorCode } from "../../../../common/errors.ts";
import type { Json } from "./schemas.ts";

/**
 * Codes that no operation is answered with: history is followed by sockets alone, and another method of a path is no
 * operation.
 */
const NEVER_ANSWERED: readonly ErrorCode[] = ["compacted", "method_not_allowed"];

const CODES = (Object.keys(ERROR_CODES) as ErrorCode[]).filter((code) => !NEVER_ANSWERED.includes(code));

/** Failures for clients that accept problems, by status; 500 has those of all other clients, too. */
const BY_STATUS = new Map<number, ErrorCode[]>();
for (const code of CODES) {
  const { status } = ERROR_CODES[code];
  BY_STATUS.set(status, [...(BY_STATUS.get(status) ?? []), code]);
}

const componentOf = (status: number): string => `Failure${String(status)}`;

const STALE = ERROR_CODES.stale.status;
const RANGE = ERROR_CODES.range.status;

interface Conditions {
  /** True if the operation checks conditions. */
  readonly isConditional: boolean;
  /** True if it answers ranges of bytes. */
  readonly isRanged: boolean;
}

/** The failures of an operation. */
export function failureResponses({ isConditional, isRanged }: Conditions): Json {
  const statuses = [...BY_STATUS.keys()].filter(
    (status) => (status !== STALE || isConditional) && (status !== RANGE || isRanged),
  );
  return Object.fromEntries(
    statuses.map((status) => [String(status), { $ref: `#/components/responses/${componentOf(status)}` }]),
  );
}

/** Failures that say when to come again have `Retry-After`. */
const RETRY_AFTER: Json = {
  "Retry-After": { description: "Seconds after which to come again.", schema: { type: "string" } },
};

const PROBLEM_CONTENT: Json = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
const FAILURE_CONTENT: Json = { "application/json": { schema: { $ref: "#/components/schemas/Failure" } } };

export const FAILURE_COMPONENTS: Json = Object.fromEntries(
  [...BY_STATUS].map(([status, codes]) => [componentOf(status), status === 500 ? anyFailure(codes) : problem(codes)]),
);

function problem(codes: readonly ErrorCode[]): Json {
  // A client that asks for a condition knows its status.
  const isForAll = codes.includes("stale") || codes.includes("range");
  return {
    description: `${isForAll ? "" : "For clients that accept application/problem+json. "}${meanings(codes)}`,
    headers: RETRY_AFTER,
    content: isForAll ? { ...FAILURE_CONTENT, ...PROBLEM_CONTENT } : PROBLEM_CONTENT,
    "x-codes": codes,
  };
}

function anyFailure(codes: readonly ErrorCode[]): Json {
  return {
    description: `Any failure, with its code. For clients that accept application/problem+json, only: ${meanings(codes)}`,
    headers: RETRY_AFTER,
    content: { ...FAILURE_CONTENT, ...PROBLEM_CONTENT },
    "x-codes": CODES,
  };
}

function meanings(codes: readonly ErrorCode[]): string {
  return codes.map((code) => `\`${code}\`: ${ERROR_CODES[code].meaning}`).join(" ");
}

const TEXT: Json = { type: "string" };
const CODE: Json = { type: "string", description: "One of x-codes of the response.", examples: ["not_found"] };

const DETAILS: Json = {
  type: "object",
  description: "Facts about the failure; absent if there are none.",
  properties: {
    line: { type: "integer", description: "Line of the place, from 1" },
    column: { type: "integer", description: "Column of the place in UTF-16 units, from 1" },
    file: { ...TEXT, description: "The script of the place" },
    unknown: { ...TEXT, description: "A name that is not known" },
    nearest: { ...TEXT, description: "The known name that was probably meant" },
    fields: { type: "array", items: TEXT, description: "Members of the input" },
    limit: { ...TEXT, description: "Name of the bound" },
    revision: { ...TEXT, description: "The present revision of the definition" },
    by: { ...TEXT, description: "User who made this revision" },
    changed: { type: "integer", description: "When it was made, in milliseconds since 1970" },
  },
};

export const FAILURE_SCHEMAS: Json = {
  Failure: {
    type: "object",
    required: ["status", "message", "error", "code"],
    properties: {
      status: { const: "error", type: "string", description: "The call failed." },
      message: { ...TEXT, description: "The failure in words, for people." },
      error: { type: "string", description: "The same as message, for older clients." },
      code: CODE,
      details: DETAILS,
    },
  },
  Problem: {
    type: "object",
    description: "RFC 9457",
    required: ["type", "title", "status", "detail", "code", "traceparent"],
    properties: {
      type: { ...TEXT, description: "The code as a URN.", examples: ["urn:odp:error:not_found"] },
      title: { ...TEXT, description: "Meaning of the code." },
      status: { type: "integer", description: "The HTTP status of the answer." },
      detail: { ...TEXT, description: "The failure in words, for people." },
      code: CODE,
      details: DETAILS,
      traceparent: { ...TEXT, description: "Trace id of the call, which the log names." },
    },
  },
  SignIn: {
    type: "object",
    description: "Nobody is signed in. Clients that accept application/problem+json get 401 instead.",
    required: ["status", "message"],
    properties: {
      status: { const: "signin", type: "string", description: "A sign-in is needed." },
      message: { type: "string", description: "The path of the sign-in page", examples: ["/user/login"] },
      details: DETAILS,
    },
  },
};
