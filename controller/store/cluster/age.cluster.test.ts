import { afterAll } from "vitest";
import { keepWarnings } from "../../../test/helpers/cluster/cassandra-warnings.ts";
import { describeCluster, openClusterSubject } from "../../../test/helpers/cluster/cluster.ts";
import { ageContract } from "../contract/age.ts";

describeCluster("contract", () => {
  const warnings = keepWarnings();
  afterAll(() => warnings.stop());
  ageContract("cluster", openClusterSubject, { warnings: () => warnings.take() });
});
