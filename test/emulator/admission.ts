import type { EnrolAnswer } from "../../common/agent/enrolment.ts";
import type { Installation } from "../e2e/installation.ts";
import type { Admission } from "./fleet.ts";

/** Admission by a controller in another process, over HTTP. */
export function admissionOver(odp: Pick<Installation, "ok">): Admission {
  return {
    token: async (host) =>
      ((await odp.ok("POST", "/agent/token", JSON.stringify({ host }))) as { token: string }).token,
    enrol: async (request) => (await odp.ok("POST", "/agent/enrol", JSON.stringify(request))) as EnrolAnswer,
  };
}
