import { describeCluster, openClusterSubject } from "../../../test/helpers/cluster/cluster.ts";
import { objectsContract } from "../contract/objects.ts";

describeCluster("contract", () => objectsContract("cluster", openClusterSubject));
