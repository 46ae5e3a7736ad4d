import { readFile } from "node:fs/promises";
import { Type } from "typebox";
import { ConfPlace, ConfRemove, PolicyConf, PolicySelect } from "../../../../common/api/policies.ts";
import { AppError } from "../../../../common/errors.ts";
import { POLICY_CONF_MAX_BYTES } from "../../../../common/limits.ts";
import { reportFailed } from "../../../http/answer/failed.ts";
import { endpoint, type Answer, type Endpoint, type UploadedFile } from "../../../http/interface/endpoint.ts";
import type { PolicyConfs } from "./service.ts";

export function confRoutes(confs: PolicyConfs): readonly Endpoint[] {
  return [
    endpoint({
      method: "PUT",
      path: "/monitoring/policy/deploy/conf/:name",
      permission: "policies:run",
      summary: "Gives hosts the conf of a policy",
      failsInPart: true,
      body: "multipart",
      uploads: "optional",
      content: (_input, files) => (files.length > 0 ? [] : ["conf"]),
      input: ConfPlace,
      output: Type.Array(PolicyConf),
      handler: ({ principal, input: { name, hosts, conf }, files }) =>
        answered(async (warn) => confs.place(principal, { name, hosts, content: await contentOf(conf, files), warn })),
    }),
    endpoint({
      method: "DELETE",
      path: "/monitoring/policy/undeploy/conf/:name",
      permission: "policies:run",
      summary: "Removes the conf of a policy from hosts",
      failsInPart: true,
      input: ConfRemove,
      output: Type.Array(PolicyConf),
      handler: ({ principal, input }) => answered((warn) => confs.withdraw(principal, { ...input, warn })),
    }),
    endpoint({
      method: "GET",
      path: "/monitoring/policy/conf/:name",
      permission: "policies:read",
      summary: "States of the conf of a policy on its hosts",
      input: PolicySelect,
      output: Type.Array(PolicyConf),
      handler: async ({ principal, input }) => ({ message: [...(await confs.states(principal, input.name))] }),
    }),
  ];
}

async function answered(
  changed: (warn: (text: string) => void) => Promise<readonly PolicyConf[]>,
): Promise<Answer<PolicyConf[]>> {
  const told: string[] = [];
  const answer = answerOf(await changed((text) => told.push(text)));
  return { ...answer, warnings: [...told, ...(answer.warnings ?? [])] };
}

/** The call itself succeeded. Its top tells of hosts that were refused, and of those that do not get the conf soon. */
function answerOf(states: readonly PolicyConf[]): Answer<PolicyConf[]> {
  const told = (isTold: (state: PolicyConf) => boolean): string[] =>
    states.filter(isTold).map(({ host, state, message }) => `${host}: ${state}. ${message}`);
  const failed = reportFailed({ faults: told(({ state }) => state === "failed"), of: states.length }, "host");
  const others = told(({ state, message }) => state !== "failed" && message !== "");
  return { message: [...states], ...failed, warnings: [...(failed.warnings ?? []), ...others] };
}

/** The bytes of an uploaded part, or those of the text in UTF-8. */
async function contentOf(conf: string | undefined, files: readonly UploadedFile[]): Promise<Uint8Array> {
  const sent = files.filter((file) => file.filename !== "" || file.size > 0);
  const [file] = sent;
  if (sent.length > 1 || (file && conf !== undefined)) throw new AppError("invalid", "The call has several confs.");
  if (file && file.size > POLICY_CONF_MAX_BYTES)
    throw new AppError("too_large", `A conf has at most ${POLICY_CONF_MAX_BYTES} bytes.`);
  if (file) return readFile(file.path);
  if (conf === undefined) throw new AppError("invalid", "conf is missing. DELETE removes the conf of a host.");
  return Buffer.from(conf);
}
