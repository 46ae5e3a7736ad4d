import { describeCluster, openClusterSubject } from "../../../test/helpers/cluster.ts";
import { objectsContract } from "../contract/objects.ts";

describeCluster("contract", () => objectsContract("cluster", openClusterSubject));
