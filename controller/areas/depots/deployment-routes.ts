import { Type, type Static } from "typebox";
import { NOT_DEPLOYED } from "../../../common/agent/deployments.ts";
import { Deployment, DeploymentOutcome } from "../../../common/api/depots.ts";
import { reportFailed } from "../../http/answer/failed.ts";
import { endpoint, type Answer, type Endpoint } from "../../http/interface/endpoint.ts";
import type { DeploymentRequest } from "./deployment-requests.ts";
import type { DeploymentService } from "./deployment.ts";

export function deploymentRoutes(deployments: DeploymentService): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/monitoring/deploy",
      permission: "depots:run",
      summary: "Puts depot versions on hosts",
      failsInPart: true,
      body: "multipart",
      input: Deployment,
      output: Type.Array(DeploymentOutcome),
      handler: ({ principal, input }) =>
        answered((warn) => deployments.deploy(principal, { ...requestOf(input), warn })),
    }),
    endpoint({
      method: "POST",
      path: "/monitoring/undeploy",
      permission: "depots:run",
      summary: "Takes depot versions off hosts",
      failsInPart: true,
      body: "multipart",
      input: Deployment,
      output: Type.Array(DeploymentOutcome),
      handler: ({ principal, input }) =>
        answered((warn) => deployments.undeploy(principal, { ...requestOf(input), warn })),
    }),
  ];
}

function requestOf({ timeout, ...rest }: Static<typeof Deployment>): DeploymentRequest {
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
