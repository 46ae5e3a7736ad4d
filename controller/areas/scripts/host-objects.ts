import { Type } from "typebox";
import { mapLimited } from "../../../common/concurrency.ts";
import { SCRIPT_CONCURRENT_AT_ONCE, SCRIPT_CONCURRENT_MAX_CALLS } from "../../../common/limits.ts";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostObject } from "../../scripting/index.ts";
import type { Audit } from "../audit/index.ts";
import type { Principal } from "../permissions/index.ts";

/** `concurrent`: runs several host calls in parallel. */
export const CONCURRENT_HOST_OBJECT: HostObject = {
  name: "concurrent",
  summary: "Several calls of one function at once",
  functions: [
    hostFunction({
      name: "run",
      summary: "Calls a function with each list of arguments; one that fails fails all",
      parameters: [
        { name: "function", schema: Type.String({ description: "Such as odb.mql" }) },
        {
          name: "arguments",
          schema: Type.Array(Type.Array(Type.Unknown()), {
            description: "One list for each call",
            maxItems: SCRIPT_CONCURRENT_MAX_CALLS,
          }),
        },
      ],
      returns: "list of the answers, in the order of the lists",
      example: 'OUTPUT = concurrent.run("appcontext.rawget", [["a"], ["b"]])',
      call: ({ call }, name, lists) => allOf(lists, async (args) => (await call(name, args as Value[])) ?? null),
    }),
  ],
};

/** If one call fails, waits for the others that have begun before the script gets the error. */
async function allOf<T>(lists: readonly T[], work: (list: T) => Promise<Value>): Promise<Value> {
  const begun: Promise<Value>[] = [];
  try {
    return await mapLimited(lists, SCRIPT_CONCURRENT_AT_ONCE, (list) => {
      const answer = work(list);
      begun.push(answer);
      return answer;
    });
  } finally {
    await Promise.allSettled(begun);
  }
}

export interface WebContextParts {
  /** The caller's identity in the form that clients know. */
  readonly identity: (principal: Principal) => Promise<Value>;
  readonly audit: Pick<Audit, "write">;
}

/** `webcontext`: the user who runs the script. */
export function webcontextHostObject({ identity, audit }: WebContextParts): HostObject {
  return {
    name: "webcontext",
    summary: "The user with whose rights the script runs",
    functions: [
      hostFunction({
        name: "user",
        summary: "The user and the company",
        parameters: [],
        returns: "{id, username, fullname, isadmin, email, …, Company}",
        example: "OUTPUT = webcontext.user().username",
        call: ({ principal }) => identity(principal),
      }),
      hostFunction({
        name: "writeOperLog",
        summary: "Makes an entry in the audit trail",
        parameters: [
          { name: "module", schema: Type.String({ maxLength: 256, description: "Part of the application" }) },
          { name: "operation", schema: Type.String({ maxLength: 1_024, description: "What was done" }) },
          { name: "result", schema: Type.Integer({ minimum: 0, maximum: 1, description: "1: done, 0: failed" }) },
        ],
        returns: "nothing",
        example: 'webcontext.writeOperLog("example", "opened", 1)',
        call: async ({ principal: { tenant, user, remote = "", traceparent } }, module, operation, result) => {
          const outcome = result === 1 ? "ok" : "failed";
          const action = `SCRIPT ${module}: ${operation}`;
          const code = result === 1 ? "ok" : "invalid";
          await audit.write({ tenant, user, permission: "scripts:read", action, outcome, code, remote, traceparent });
          return undefined;
        },
      }),
    ],
  };
}
