import { Type, type Static } from "typebox";
import { NOT_DEPLOYED } from "../../../common/agent/deployments.ts";
import { DeploymentCall, DeploymentOutcome, WaitingBegun } from "../../../common/api/depots.ts";
import { reportFailed } from "../../http/answer/failed.ts";
import { endpoint, type Answer, type Call, type Endpoint } from "../../http/interface/endpoint.ts";
import type { DeploymentRequest } from "./deployment-requests.ts";
import type { DeploymentService } from "./deployment.ts";
import { begunOf, waitMsOf } from "./waiting/routes.ts";
import type { WaitingDeployments } from "./waiting/service.ts";

interface Services {
  readonly deployments: DeploymentService;
  readonly waiting: WaitingDeployments;
}

/** Outcomes of all targets; of a call with `wait`, the deployment that was begun. */
const ANSWER = Type.Union([Type.Array(DeploymentOutcome), WaitingBegun]);

export function deploymentRoutes(services: Services): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/monitoring/deploy",
      permission: "depots:run",
      summary: "Puts depot versions on hosts",
      failsInPart: true,
      body: "multipart",
      input: DeploymentCall,
      output: ANSWER,
      handler: (call) => placed(services, "deploy", call),
    }),
    endpoint({
      method: "POST",
      path: "/monitoring/undeploy",
      permission: "depots:run",
      summary: "Takes depot versions off hosts",
      failsInPart: true,
      body: "multipart",
      input: DeploymentCall,
      output: ANSWER,
      handler: (call) => placed(services, "undeploy", call),
    }),
  ];
}

async function placed(
  { deployments, waiting }: Services,
  action: "deploy" | "undeploy",
  { principal, input }: Pick<Call<Static<typeof DeploymentCall>>, "principal" | "input">,
): Promise<Answer<Static<typeof ANSWER>>> {
  const waitMs = waitMsOf(input.wait);
  if (waitMs === undefined) return answered((warn) => deployments[action](principal, { ...requestOf(input), warn }));
  const warnings: string[] = [];
  const request = { ...requestOf(input), warn: (text: string) => void warnings.push(text) };
  const begun = await waiting.begin(principal, request, { action, waitMs });
  return { message: begunOf(begun), warnings };
}

function requestOf({ timeout, wait: _wait, ...rest }: Static<typeof DeploymentCall>): DeploymentRequest {
  return { ...rest, ...(timeout === undefined ? {} : { timeoutSeconds: timeout }) };
}

type Outcomes = readonly DeploymentOutcome[];

/** Makes the answer of a deployment, with the warnings that it gave. */
export async function answered(
  carriedOut: (warn: (text: string) => void) => Promise<Outcomes>,
): Promise<Answer<DeploymentOutcome[]>> {
  const told: string[] = [];
  const answer = answerOfDeployment(await carriedOut((text) => told.push(text)));
  return { ...answer, warnings: [...told, ...(answer.warnings ?? [])] };
}

/**
 * The call itself succeeded, so its status is ok. Its top reports the targets that failed or were not reached, and those
 * that had nothing to remove.
 */
function answerOfDeployment(outcomes: Outcomes): Answer<DeploymentOutcome[]> {
  const absent = outcomes.filter(({ state, message }) => state === "ok" && message === NOT_DEPLOYED);
  const faults = outcomes
    .filter(({ state }) => state !== "ok")
    .map(
      ({ host, depot, version, state, message }) =>
        `${depot === "" ? "" : `${depot} ${version} on `}${host}: ${state}${message === "" ? "." : `, ${message}`}`,
    );
  const failed = reportFailed({ faults, of: outcomes.length }, "target");
  const warnings = absent.map(({ host, depot, version }) => `${depot} ${version} on ${host}: ${NOT_DEPLOYED}.`);
  return { message: [...outcomes], ...failed, warnings: [...(failed.warnings ?? []), ...warnings] };
}
