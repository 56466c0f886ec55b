// Prints size and offsets of each structure of abi.h.
#include <stddef.h>
#include <stdio.h>

#include "abi.h"

#define SIZE(t) printf(#t " %zu\n", sizeof(t))
#define FIELD(t, f) printf(#t "." #f " %zu %zu\n", offsetof(t, f), sizeof(((t *)0)->f))

int main(void) {
  SIZE(aclrtMemLocation);
  FIELD(aclrtMemLocation, id);
  FIELD(aclrtMemLocation, type);
  SIZE(aclrtPtrAttributes);
  FIELD(aclrtPtrAttributes, location);
  FIELD(aclrtPtrAttributes, pageSize);
  SIZE(aclrtPhysicalMemProp);
  FIELD(aclrtPhysicalMemProp, handleType);
  FIELD(aclrtPhysicalMemProp, allocationType);
  FIELD(aclrtPhysicalMemProp, memAttr);
  FIELD(aclrtPhysicalMemProp, location);
  FIELD(aclrtPhysicalMemProp, reserve);
  SIZE(aclrtMemAccessDesc);
  FIELD(aclrtMemAccessDesc, flags);
  FIELD(aclrtMemAccessDesc, location);
  SIZE(aclrtMemcpyBatchAttr);
  FIELD(aclrtMemcpyBatchAttr, dstLoc);
  FIELD(aclrtMemcpyBatchAttr, srcLoc);
  return 0;
}
