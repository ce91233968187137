/* Zephyr's printk, on this machine. */
#include <stdio.h>

#define printk printf
